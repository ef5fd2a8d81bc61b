/* Reads data of a process from /proc. Thread safe. A few system calls per function, so not for hot loops. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the file /proc/PID/NAME as text. Returns its length or -errno. A longer text is cut. */
int procfs_read(int pid, const char *name, char *text, size_t size);

/*
 * Reads the start time of a process in clock ticks since boot. Together with the pid it identifies the process. Returns -ESRCH
 * if the process is gone.
 */
int procfs_start_time(int pid, uint64_t *ret_ticks);

/* Returns the parent's pid; 0 if the process has no parent or is gone. */
int procfs_parent(int pid);

/* Returns true if the process runs the same program file as this process. */
bool procfs_is_same_program(int pid);

/*
 * Returns true if the process has begun to exit or is gone. While it exits, its descriptors may still be
 * open.
 */
bool procfs_is_ending(int pid);

/* Returns true if the process cannot run: stopped by a signal or a debugger, or in a frozen cgroup. */
bool procfs_is_stopped(int pid);
