/* One traced process: writes the events in its ring as events of its threads. Not thread safe. */
#pragma once

#include "cli/trace/names.h"
#include "cli/trace/out.h"
#include "cli/trace/ring_reader.h"
#include "cli/trace/tick_map.h"

#define PROCESS_HELD 64

/* Counts of what was written, for the summary at the end. */
struct trace_sums {
	uint64_t launches, work, allocations, frees, denied, gate_waits, memory_waits, moves, lost;
};

struct traced_process {
	struct ring_reader reader;
	struct names names;
	int pid;
	char command[16];
	uint64_t launch_ns; /* shortest time that a recent launch took; 0 if unknown */
	/*
	 * For each slot of threads, a kernel whose length is unknown. It is written when the thread's next event gives an
	 * upper bound of its length. Kind is 0 if there is none.
	 */
	struct trace_event held[PROCESS_HELD];
};

/* What is needed to write events. The caller owns all of it. */
struct trace_scene {
	struct out *out;
	const struct tick_map *map;
	const unsigned *device; /* the GPU's index of each device of the tenant */
	size_t device_count;
	uint64_t end_ns; /* end of the trace; events that begin later are left out */
	struct trace_sums *sums;
};

/* Writes the process's name and its position among the tracks. */
void traced_process_begin(struct traced_process *process, struct out *out);

/* Writes what is new up to the map's last moment; see ring_reader_drain(). Returns -ENOMEM if out of memory. */
int traced_process_write(struct traced_process *process, const struct trace_scene *scene,
			 uint64_t now_ns, bool is_last);

void traced_process_end(struct traced_process *process);
