/*
 * The run directory's file "stopped" lists the pid and start time of each process that this daemon has stopped. If this daemon
 * is killed, the next one continues these processes. Main thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stopped_process {
	int pid;
	uint64_t start_time; /* with the pid, identifies the process */
};

/* Writes the list, or removes the file if the list is empty. Returns 0 or -errno. */
int stopped_list_write(const char *run_dir, const struct stopped_process *list, size_t count);
/* Continues the processes that still exist, and removes the file. Returns their number. */
unsigned stopped_list_continue(const char *run_dir);
