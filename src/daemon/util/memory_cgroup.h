/*
 * The cgroup to which a process's memory is charged, and how much more can be charged there.
 * Version 1 if it has the memory controller, else version 2 (the kernel's
 * Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/util/cgroups.h"

struct memory_cgroup {
	bool is_v2;
	char dir[CGROUP_DIR_MAX];
	size_t mount_length; /* length of the mount's path in `dir`; parents end there */
};

/*
 * Finds the cgroup from the text of /proc/PID/cgroup. Returns -EOPNOTSUPP if no such hierarchy is
 * mounted, or another -errno.
 */
int memory_cgroup_find(const struct cgroups *cgroups, const char *text, struct memory_cgroup *ret);
/* Finds the cgroup of a process, by this process's mounts. */
int memory_cgroup_of(int pid, struct memory_cgroup *ret);

/*
 * Bytes until the cgroup or one of its parents reaches its limit, not counting cached files that
 * were not used recently. UINT64_MAX: no limit. May be called in a forked child of a process with
 * threads.
 */
uint64_t memory_cgroup_room(const struct memory_cgroup *cgroup);

/* Moves the calling process there. Returns 0 or -errno. May be called in such a child. */
int memory_cgroup_join(const struct memory_cgroup *cgroup);
