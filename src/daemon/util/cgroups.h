/*
 * Finds where cgroups are mounted, and freezes cgroups: the kernel's freezer stops all processes of a cgroup until a thaw.
 * Sources, in the kernel's Documentation: admin-guide/cgroup-v2.rst (cgroup.freeze and cgroup.events, Linux 5.2) and
 * admin-guide/cgroup-v1/freezer-subsystem.rst (freezer.state). Thread safe. Each function makes a few system calls.
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
	/* path, within the hierarchy, of the cgroup that is mounted at `mount`; "" for the root */
	char root[CONTAINER_PATH_MAX];
	char own[CONTAINER_PATH_MAX]; /* the cgroup of this process */
};

struct cgroups {
	struct cgroups_hierarchy v2, v1; /* v1: the freezer's hierarchy */
	struct cgroups_hierarchy v1_memory;
};

struct cgroup {
	bool is_v2;
	char dir[CGROUP_DIR_MAX];
};

/* Parses the texts of /proc/self/mountinfo and /proc/self/cgroup (proc(5)). Pure. */
void cgroups_parse(const char *mountinfo, const char *own, struct cgroups *ret);
/* Returns -errno if /proc cannot be read. */
int cgroups_find(struct cgroups *ret);

/*
 * Finds the directory of a cgroup, from its path in the hierarchy. Returns -EOPNOTSUPP if the hierarchy is not mounted, or if
 * the mounted part does not contain the path. Returns another -errno if the directory does not exist.
 */
int cgroups_dir(const struct cgroups_hierarchy *hierarchy, const char *path,
		char ret_dir[CGROUP_DIR_MAX]);

/*
 * Chooses the freezer for a container: version 2 if possible, because a killed process can die there even while frozen;
 * else version 1. Returns -EPERM if this process is in the container, -EROFS or -EACCES if the freezer cannot be written,
 * -EOPNOTSUPP if there is none, -ENOENT if the cgroup is gone.
 */
int cgroup_find_freezer(const struct cgroups *cgroups, const struct container *container,
			struct cgroup *ret, struct error *err);

/* Request a freeze or a thaw, and do not wait for it. Return -ENOENT or -ENODEV if the cgroup is gone. */
int cgroup_freeze(const struct cgroup *cgroup);
int cgroup_thaw(const struct cgroup *cgroup);
/*
 * Returns 1 if all processes are frozen, 0 if not yet, or -errno. Repeats the request to a freezer of version 1, which can miss
 * processes that fork.
 */
int cgroup_retry_freeze(const struct cgroup *cgroup);
/* Returns 1 if all processes are frozen, 0 if not, -ENOENT or -ENODEV if the cgroup is gone. */
int cgroup_is_frozen(const struct cgroup *cgroup);

/* For a caller that can only write files: writing *ret_text to the file ret_file thaws the cgroup. */
void cgroup_thaw_file(const struct cgroup *cgroup, char ret_file[CGROUP_DIR_MAX + 16],
		      const char **ret_text);

/* True if a killed process cannot end before the thaw, because a freezer of version 1 holds it. Its pidfd reports no end. */
bool cgroup_has_killed(const struct cgroup *cgroup);
