/*
 * Where cgroups are mounted, and the two freezers: version 2 (cgroup.freeze, cgroup.events: kernel's
 * Documentation/admin-guide/cgroup-v2.rst, Linux 5.2) and version 1 (freezer.state:
 * admin-guide/cgroup-v1/freezer-subsystem.rst). Thread safe; a few system calls each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "daemon/util/container.h"

#define CGROUPS_MOUNT_MAX 256
#define CGROUP_DIR_MAX (CGROUPS_MOUNT_MAX + CONTAINER_PATH_MAX)

/* A mounted hierarchy. Without any, mount is "". */
struct cgroups_hierarchy {
	char mount[CGROUPS_MOUNT_MAX];
	char root[CONTAINER_PATH_MAX]; /* the cgroup that is mounted there; "" for the root */
	char own[CONTAINER_PATH_MAX];  /* the one that this process is in */
};

struct cgroups {
	struct cgroups_hierarchy v2, v1; /* v1: of the freezer */
	struct cgroups_hierarchy v1_memory;
};

/* A cgroup that can be frozen. */
struct cgroup {
	bool is_v2;
	char dir[CGROUP_DIR_MAX];
};

/* From the texts of /proc/self/mountinfo and /proc/self/cgroup (proc(5)). Pure. */
void cgroups_parse(const char *mountinfo, const char *own, struct cgroups *ret);
/* Of this process. -errno when /proc can't be read. */
int cgroups_find(struct cgroups *ret);

/*
 * The directory of a cgroup, by its path in that hierarchy. -EOPNOTSUPP: it is not mounted, or only from a
 * cgroup on that is not above; -errno when there is none.
 */
int cgroups_dir(const struct cgroups_hierarchy *hierarchy, const char *path,
		char ret_dir[CGROUP_DIR_MAX]);

/*
 * Where to freeze this container: version 2 where it has a cgroup there, since what is killed
 * dies even while it is frozen; else version 1. -EPERM: this process lives in it; -EROFS or -EACCES:
 * there is a freezer and it can't be written; -EOPNOTSUPP: there is none; -ENOENT: it is gone.
 */
int cgroup_choose(const struct cgroups *cgroups, const struct container *container,
		  struct cgroup *ret, struct error *err);

/*
 * Begins to freeze or to thaw, without waiting for it. -ENOENT when the cgroup is gone (-ENODEV where
 * it went meanwhile).
 */
int cgroup_freeze(const struct cgroup *cgroup);
int cgroup_thaw(const struct cgroup *cgroup);
/*
 * For one that was to be frozen a while ago: version 1 may have to be told again, since it can miss what
 * forks. 1 when it is frozen, 0 when not yet, or -errno.
 */
int cgroup_freeze_again(const struct cgroup *cgroup);
/* 1 when every process in it stands still, 0 when not (yet), -ENOENT or -ENODEV as above. */
int cgroup_is_frozen(const struct cgroup *cgroup);

/* The file that thaws it, and what to write there: for whoever may not do more than write. */
void cgroup_thaw_file(const struct cgroup *cgroup, char ret_file[CGROUP_DIR_MAX + 16],
		      const char **ret_text);

/*
 * Is a process in it that was killed and, frozen by version 1, can't die? Version 2 lets it: false.
 * Looks at the signals pending in /proc/PID/status: its pidfd stays silent.
 */
bool cgroup_has_killed(const struct cgroup *cgroup);
