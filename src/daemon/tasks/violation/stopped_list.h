/*
 * The file "stopped" in the run directory: the processes that this daemon has stopped, one line
 * each with pid and start time. If the daemon is killed, the next daemon continues them. Main
 * thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stopped_process {
	int pid;
	uint64_t start_time; /* identifies the process together with the pid: procfs.h */
};

/* Writes the list, or removes the file if the list is empty. Returns 0 or -errno. */
int stopped_list_write(const char *run_dir, const struct stopped_process *list, size_t count);
/*
 * Continues the processes of the file that still exist, and removes the file. Returns how many were
 * continued.
 */
unsigned stopped_list_continue(const char *run_dir);
