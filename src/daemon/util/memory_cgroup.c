#include "daemon/util/memory_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/util/procfs.h"

#define TEXT_MAX 4096
#define FILE_MAX (CGROUP_DIR_MAX + 32)

static const struct {
	const char *limit, *usage, *droppable;
} files[] = {
	{ "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file " },
	{ "memory.max", "memory.current", "inactive_file " },
};

int memory_cgroup_find(const struct cgroups *cgroups, const char *text, struct memory_cgroup *ret)
{
	char path[CONTAINER_PATH_MAX];
	const struct cgroups_hierarchy *h = &cgroups->v1_memory;
	ret->is_v2 = !h->mount[0] || !container_read_path(text, "memory", path);
	if (ret->is_v2) {
		h = &cgroups->v2;
		if (!container_read_path(text, "", path))
			return -EOPNOTSUPP;
	}
	ret->mount_length = strlen(h->mount);
	return cgroups_dir(h, path, ret->dir);
}

int memory_cgroup_of(int pid, struct memory_cgroup *ret)
{
	struct cgroups cgroups;
	char text[TEXT_MAX];
	int r = cgroups_find(&cgroups);
	if (r >= 0)
		r = procfs_read(pid, "cgroup", text, sizeof(text));
	return r < 0 ? r : memory_cgroup_find(&cgroups, text, ret);
}

/* Reads the file `name` of the cgroup whose directory is dir[0..length). The text is "" if there is no such file. */
static void read_file(const char *dir, size_t length, const char *name, char text[TEXT_MAX])
{
	char path[FILE_MAX];
	size_t n = strlen(name);
	ssize_t got = -1;
	text[0] = '\0';
	if (length + 1 + n >= sizeof(path))
		return;
	memcpy(path, dir, length);
	path[length] = '/';
	memcpy(path + length + 1, name, n + 1);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		got = read(fd, text, TEXT_MAX - 1);
	text[got > 0 ? got : 0] = '\0';
}

/* Returns the number at the start of a text; UINT64_MAX if there is none ("max") or if the number is too large. */
static uint64_t parse_uint(const char *text)
{
	uint64_t value = 0;
	if (*text < '0' || *text > '9')
		return UINT64_MAX;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return UINT64_MAX;
	return value;
}

/* Returns the value of the line "key value" of memory.stat, or 0. `key` ends with a space. */
static uint64_t stat_value(const char *text, const char *key)
{
	const char *at = strncmp(text, key, strlen(key)) == 0 ? text : NULL;
	for (const char *line = text; !at && (line = strchr(line, '\n')); line++)
		if (!strncmp(line + 1, key, strlen(key)))
			at = line + 1;
	uint64_t value = at ? parse_uint(at + strlen(key)) : 0;
	return value == UINT64_MAX ? 0 : value;
}

static uint64_t free_bytes_at(const struct memory_cgroup *c, size_t length)
{
	char text[TEXT_MAX];
	read_file(c->dir, length, files[c->is_v2].limit, text);
	uint64_t limit = parse_uint(text);
	if (limit == UINT64_MAX)
		return UINT64_MAX;
	read_file(c->dir, length, files[c->is_v2].usage, text);
	uint64_t usage = parse_uint(text);
	read_file(c->dir, length, "memory.stat", text);
	uint64_t droppable = stat_value(text, files[c->is_v2].droppable);
	usage -= droppable < usage ? droppable : usage;
	return usage < limit ? limit - usage : 0;
}

uint64_t memory_cgroup_free_bytes(const struct memory_cgroup *c)
{
	uint64_t room = UINT64_MAX;
	for (size_t length = strlen(c->dir); length > c->mount_length;) {
		uint64_t here = free_bytes_at(c, length);
		room = here < room ? here : room;
		while (length > c->mount_length && c->dir[--length] != '/')
			;
	}
	return room;
}

int memory_cgroup_join(const struct memory_cgroup *c)
{
	char path[FILE_MAX];
	size_t n = strlen(c->dir);
	memcpy(path, c->dir, n);
	memcpy(path + n, "/cgroup.procs", sizeof("/cgroup.procs"));
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, "0", 1) < 0 ? -errno : 0;
}
