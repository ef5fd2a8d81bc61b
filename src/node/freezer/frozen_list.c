#include "node/freezer/frozen_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PATH_SIZE 256

int frozen_list_write(const char *run_dir, const struct cgroup *const *list, size_t count)
{
	char path[PATH_SIZE], fresh[PATH_SIZE + 8];
	snprintf(path, sizeof(path), "%s/frozen", run_dir);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	if (count == 0)
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	FILE *f = fopen(fresh, "we");
	if (!f)
		return -errno;
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%s %s\n", list[i]->is_v2 ? "2" : "1", list[i]->dir);
	/* Not synced: after a crash of the machine nothing is frozen. */
	bool bad = ferror(f);
	bad |= fclose(f) != 0;
	if (bad || rename(fresh, path) < 0) {
		int r = bad ? -EIO : -errno;
		unlink(fresh);
		return r;
	}
	return 0;
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

unsigned frozen_list_thaw(const char *run_dir, const struct cgroups *cgroups)
{
	char path[PATH_SIZE], line[CGROUP_DIR_MAX + 8];
	unsigned thawed = 0;
	snprintf(path, sizeof(path), "%s/frozen", run_dir);
	cleanup_file FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		struct cgroup c = { .is_v2 = line[0] == '2' };
		line[strcspn(line, "\n")] = '\0';
		if (strlen(line) < 3 || strlen(line + 2) >= sizeof(c.dir))
			continue;
		strcpy(c.dir, line + 2);
		if (is_believed(&c, cgroups) && cgroup_thaw(&c) >= 0)
			thawed++;
	}
	unlink(path);
	return thawed;
}
