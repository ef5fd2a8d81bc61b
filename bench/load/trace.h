/* A trace: when each of several tenants has work. A line is ROW BEGIN_S END_S,
 * in seconds from the start of the run; '#' begins a comment. Several rows may
 * stand in one file, each in order of time and without overlap.
 */
#pragma once

#include <stdint.h>

#define TRACE_PHASES_MAX 1024

struct trace_phase {
	uint64_t begin_ns, end_ns; /* from the start of the run */
	uint64_t first_ns;         /* from begin_ns to the first kernel done; 0: none was */
};

struct trace {
	unsigned count;
	struct trace_phase phase[TRACE_PHASES_MAX];
};

/* Reads one row's phases. Ends the program with status 2 and a line that names
 * the place when the file can't be read, is wrong, or has no such row. */
void trace_read(struct trace *t, const char *path, unsigned row);
