/* One traced process: writes the events in its ring as events of its threads. Not thread safe. */
#pragma once

#include "cli/trace/trace_names.h"
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
	 * The last kernel of unknown length of thread t, at index t % PROCESS_HELD. It is written when the thread's next
	 * event gives an upper bound of the length. An entry whose kind is 0 is empty.
	 */
	struct trace_event held[PROCESS_HELD];
};

/* The objects that writing events needs. The caller owns all of them. */
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

/* Writes the new events that ended before the last moment of scene->map; see ring_reader_drain(). -ENOMEM if out of memory. */
int traced_process_write(struct traced_process *process, const struct trace_scene *scene,
			 uint64_t now_ns, bool is_last);

void traced_process_end(struct traced_process *process);
