/*
 * Cgroup mounts and the two freezers: version 2 (cgroup.freeze, cgroup.events: the kernel's
 * Documentation/admin-guide/cgroup-v2.rst, Linux 5.2) and version 1 (freezer.state:
 * admin-guide/cgroup-v1/freezer-subsystem.rst). Thread safe; a few system calls per function.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "daemon/util/container.h"

#define CGROUPS_MOUNT_MAX 256
#define CGROUP_DIR_MAX (CGROUPS_MOUNT_MAX + CONTAINER_PATH_MAX)

/* A mounted hierarchy. If it is not mounted, `mount` is "". */
struct cgroups_hierarchy {
	char mount[CGROUPS_MOUNT_MAX];
	char root[CONTAINER_PATH_MAX]; /* the cgroup that is mounted there; "" for the root */
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
 * The directory of a cgroup, by its path in that hierarchy. Returns -EOPNOTSUPP if the hierarchy is
 * not mounted, or if the mounted part does not contain the path. Returns another -errno if the
 * directory does not exist.
 */
int cgroups_dir(const struct cgroups_hierarchy *hierarchy, const char *path,
		char ret_dir[CGROUP_DIR_MAX]);

/*
 * Chooses where to freeze a container: version 2 if the container has a cgroup there, because
 * killed processes then die even while frozen; else version 1. Returns -EPERM if this process is in
 * the container, -EROFS or -EACCES if the freezer cannot be written, -EOPNOTSUPP if there is no
 * freezer, -ENOENT if the cgroup is gone.
 */
int cgroup_choose(const struct cgroups *cgroups, const struct container *container,
		  struct cgroup *ret, struct error *err);

/*
 * Begin to freeze or thaw, without waiting. Return -ENOENT if the cgroup is gone, or -ENODEV if it
 * went meanwhile.
 */
int cgroup_freeze(const struct cgroup *cgroup);
int cgroup_thaw(const struct cgroup *cgroup);
/*
 * Call some time after cgroup_freeze(). Version 1 may need the request again, because it can miss
 * forking processes. Returns 1 if the cgroup is frozen, 0 if not yet, or -errno.
 */
int cgroup_freeze_again(const struct cgroup *cgroup);
/*
 * Returns 1 if every process in the cgroup is frozen, 0 if not (yet), or -ENOENT or -ENODEV as
 * above.
 */
int cgroup_is_frozen(const struct cgroup *cgroup);

/*
 * The file that thaws the cgroup, and the text to write there, for code that can only write a file.
 */
void cgroup_thaw_file(const struct cgroup *cgroup, char ret_file[CGROUP_DIR_MAX + 16],
		      const char **ret_text);

/*
 * Whether a process was killed but cannot die, because version 1 has frozen it. Always false for
 * version 2, which lets it die. Reads the pending signals in /proc/PID/status, because the pidfd
 * does not report such a process.
 */
bool cgroup_has_killed(const struct cgroup *cgroup);
