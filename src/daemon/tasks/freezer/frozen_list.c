#include "daemon/tasks/freezer/frozen_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/util/whole_file.h"

#define PATH_SIZE 256
#define MOST_BYTES (16 << 20)

int frozen_list_write(const char *run_dir, const struct cgroup *const *list, size_t count)
{
	char path[PATH_SIZE];
	cleanup_free char *lines = NULL;
	size_t size;
	FILE *f = open_memstream(&lines, &size);
	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%s %s\n", list[i]->is_v2 ? "2" : "1", list[i]->dir);
	if (fclose(f) != 0)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/frozen", run_dir);
	/* Not synced to disk: after a crash of the machine, nothing is frozen. */
	return whole_file_write_lines(path, lines, false);
}

static bool is_believed(const struct cgroup *c, const struct cgroups *cgroups)
{
	const char *mount = c->is_v2 ? cgroups->v2.mount : cgroups->v1.mount;
	size_t n = strlen(mount);
	char id[CONTAINER_ID_MAX];
	const char *engine;
	unsigned length;
	return n && !strncmp(c->dir, mount, n) && !strstr(c->dir, "/../") &&
	       container_match(c->dir + n, &length, &engine, id) && n + length == strlen(c->dir);
}

struct thaw {
	const struct cgroups *cgroups;
	unsigned count;
};

static void thaw_line(void *data, char *line)
{
	struct thaw *thaw = data;
	struct cgroup c = { .is_v2 = line[0] == '2' };
	if (strlen(line) < 3 || strlen(line + 2) >= sizeof(c.dir))
		return;
	strcpy(c.dir, line + 2);
	if (is_believed(&c, thaw->cgroups) && cgroup_thaw(&c) >= 0)
		thaw->count++;
}

unsigned frozen_list_thaw(const char *run_dir, const struct cgroups *cgroups)
{
	char path[PATH_SIZE];
	struct thaw thaw = { .cgroups = cgroups };
	snprintf(path, sizeof(path), "%s/frozen", run_dir);
	whole_file_read_lines(path, MOST_BYTES, thaw_line, &thaw);
	unlink(path);
	return thaw.count;
}
