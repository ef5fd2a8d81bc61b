/*
 * The cgroup that a process's memory is charged to: where it is, and how much more can be charged there. Version 1
 * where that has the memory controller, else version 2 (kernel's Documentation/admin-guide/cgroup-v1/memory.rst
 * and cgroup-v2.rst). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/util/cgroups.h"

struct memory_cgroup {
	bool is_v2;
	char dir[CGROUP_DIR_MAX];
	size_t mount_length; /* of dir: its parents end there */
};

/* Of the texts of a process: /proc/PID/cgroup. -EOPNOTSUPP: no such hierarchy is mounted; or -errno. */
int memory_cgroup_find(const struct cgroups *cgroups, const char *text, struct memory_cgroup *ret);
/* Of a process, as this process sees the mounts. */
int memory_cgroup_of(int pid, struct memory_cgroup *ret);

/*
 * Bytes until it or one above it is at its limit; files that are kept in memory and were not used of late don't
 * count. UINT64_MAX: no limit. May be called in a fork of a process with threads.
 */
uint64_t memory_cgroup_room(const struct memory_cgroup *cgroup);

/* Puts the calling process there. -errno. May be called in such a fork. */
int memory_cgroup_join(const struct memory_cgroup *cgroup);
