/*
 * What /proc says of a process. Thread safe. A few system calls each: not for hot loops.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file /proc/PID/NAME as text; its length, or -errno. What is longer is cut off. */
int procfs_read(int pid, const char *name, char *text, size_t size);

/* When the process was started (clock ticks since boot): with the pid, names it for good. -ESRCH. */
int procfs_start_time(int pid, uint64_t *ret_ticks);

/* The pid of its parent; 0: it has none, or is gone. */
int procfs_parent(int pid);

/* True when the process runs the same program as this one does: the same file. */
bool procfs_is_same_program(int pid);

/* True when the process has begun to end. Its descriptors may be open for a while yet. */
bool procfs_is_ending(int pid);

/* True when the process can't run: stopped by a signal or a debugger, or its cgroup is frozen. */
bool procfs_is_stopped(int pid);
