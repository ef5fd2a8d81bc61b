/*
 * Finds the cgroup to which a process's memory is charged, and how much more may be charged there. Uses version 1 if the
 * memory controller is mounted there, else version 2 (the kernel's admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst).
 * Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/util/cgroups.h"

struct memory_cgroup {
	bool is_v2;
	char dir[CGROUP_DIR_MAX];
	/* length of the mount point's path, with which `dir` begins; the mount point is the topmost cgroup's directory */
	size_t mount_length;
};

/* `text`: /proc/PID/cgroup. Returns -EOPNOTSUPP if no memory controller is mounted, or another -errno. */
int memory_cgroup_find(const struct cgroups *cgroups, const char *text, struct memory_cgroup *ret);
int memory_cgroup_of(int pid, struct memory_cgroup *ret);

/*
 * Returns how many bytes can be charged before the cgroup or a parent reaches its limit; UINT64_MAX if there is no limit.
 * Cached file pages that were not used recently count as free. Safe after fork() in a process with threads.
 */
uint64_t memory_cgroup_free_bytes(const struct memory_cgroup *cgroup);

/* Moves the calling process into the cgroup. Returns 0 or -errno. Safe after fork() in a process with threads. */
int memory_cgroup_join(const struct memory_cgroup *cgroup);
