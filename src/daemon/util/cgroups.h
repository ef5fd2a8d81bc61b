/*
 * Finds where cgroups are mounted, and freezes cgroups by either freezer. In the kernel's
 * Documentation: version 2 (cgroup.freeze, cgroup.events; Linux 5.2): admin-guide/cgroup-v2.rst;
 * version 1 (freezer.state): admin-guide/cgroup-v1/freezer-subsystem.rst. Thread safe; a few system
 * calls per function.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "daemon/util/container.h"

#define CGROUPS_MOUNT_MAX 256
#define CGROUP_DIR_MAX (CGROUPS_MOUNT_MAX + CONTAINER_PATH_MAX)

/* A cgroup hierarchy. `mount` is "" if it is not mounted. */
struct cgroups_hierarchy {
	char mount[CGROUPS_MOUNT_MAX];
	char root[CONTAINER_PATH_MAX]; /* the cgroup that is mounted at `mount`; "" for the root */
	char own[CONTAINER_PATH_MAX];  /* the cgroup of this process */
};

struct cgroups {
	struct cgroups_hierarchy v2, v1; /* v1: the freezer's hierarchy */
	struct cgroups_hierarchy v1_memory;
};

/* A cgroup that can be frozen. */
struct cgroup {
	bool is_v2;
	char dir[CGROUP_DIR_MAX];
};

/* Parses the texts of /proc/self/mountinfo and /proc/self/cgroup (proc(5)). Pure. */
void cgroups_parse(const char *mountinfo, const char *own, struct cgroups *ret);
/* Finds the hierarchies of this process. Returns -errno if /proc cannot be read. */
int cgroups_find(struct cgroups *ret);

/*
 * Finds the directory of a cgroup, from its path in the hierarchy. Returns -EOPNOTSUPP if the
 * hierarchy is not mounted, or if the mounted part does not contain the path. Returns another
 * -errno if the directory does not exist.
 */
int cgroups_dir(const struct cgroups_hierarchy *hierarchy, const char *path,
		char ret_dir[CGROUP_DIR_MAX]);

/*
 * Chooses where to freeze a container: version 2 if the container has a cgroup there, where killed
 * processes die even while frozen; else version 1. Returns -EPERM if this process is in the
 * container, -EROFS or -EACCES if the freezer cannot be written, -EOPNOTSUPP if there is no
 * freezer, -ENOENT if the cgroup is gone.
 */
int cgroup_choose(const struct cgroups *cgroups, const struct container *container,
		  struct cgroup *ret, struct error *err);

/*
 * Begin to freeze or thaw the cgroup, without waiting for the result. Return -ENOENT if the cgroup
 * is gone, or -ENODEV if it is removed during the call.
 */
int cgroup_freeze(const struct cgroup *cgroup);
int cgroup_thaw(const struct cgroup *cgroup);
/*
 * Checks a freeze some time after cgroup_freeze(). Returns 1 if the cgroup is frozen, 0 if not yet,
 * or -errno. In version 1 also requests the freeze again if needed, because version 1 can miss
 * processes that fork.
 */
int cgroup_freeze_again(const struct cgroup *cgroup);
/*
 * Returns 1 if every process in the cgroup is frozen, 0 if not (yet), or -ENOENT or -ENODEV if the
 * cgroup is gone.
 */
int cgroup_is_frozen(const struct cgroup *cgroup);

/*
 * Returns the file that thaws the cgroup and the text to write there, for a caller that can only
 * write to files.
 */
void cgroup_thaw_file(const struct cgroup *cgroup, char ret_file[CGROUP_DIR_MAX + 16],
		      const char **ret_text);

/*
 * Returns true if some process in the cgroup was killed but cannot die, because version 1 has frozen it.
 * (Version 2 lets it die, so the result is false.) Looks for a pending SIGKILL in /proc/PID/status,
 * because a pidfd does not report such a process as ended.
 */
bool cgroup_has_killed(const struct cgroup *cgroup);
