/*
 * The file "stopped" in the run directory: which processes this daemon has stopped, one a line: pid and start
 * time. A daemon that was killed can't continue them; the next one does. Main thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stopped_process {
	int pid;
	uint64_t start_time; /* with the pid, names it for good: procfs.h */
};

/* Without any the file is removed. -errno. */
int stopped_list_write(const char *run_dir, const struct stopped_process *list, size_t count);
/* Continues those of the file that still are who they were, and removes it. How many. */
unsigned stopped_list_continue(const char *run_dir);
