/* Reads /proc. Thread safe. Each function makes a few system calls, so not for hot loops. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads /proc/PID/NAME. Returns the text's length or -errno. Cuts a text longer than `size` - 1. */
int procfs_read(int pid, const char *name, char *text, size_t size);

/* Reads a text file up to its first NUL. The caller frees the result: "" if reading fails, NULL if the file can't be opened. */
char *procfs_read_all(const char *path);

/*
 * Reads the start time in clock ticks since boot, which with the pid identifies a process. Returns -ESRCH if the process is
 * gone or a zombie, or another -errno if /proc cannot be read.
 */
int procfs_start_time(int pid, uint64_t *ret_ticks);

/*
 * Opens a pidfd (close-on-exec) of the process that has this pid and start time. Returns -ESRCH if that process has ended, or
 * another -errno if it may live. The caller closes the pidfd.
 */
int procfs_open_process(int pid, uint64_t start_time, int *ret_pidfd);

/* Decodes a path of mountinfo in place: "\ooo" is an octal escape for space, tab, newline or backslash (proc(5)). */
void procfs_unescape(char *text);

/* 0 if the process has no parent or is gone */
int procfs_parent(int pid);

bool procfs_is_same_program(int pid);

/* Returns true if the process is exiting or gone. Its descriptors may still be open. */
bool procfs_is_ending(int pid);

/* Returns true if the process cannot run: stopped by a signal or a debugger, or in a frozen cgroup. */
bool procfs_is_stopped(int pid);
