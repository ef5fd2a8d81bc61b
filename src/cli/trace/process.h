/*
 * A traced process's part of the trace: what its ring has, written as events of its threads. One thread.
 */
#pragma once

#include "cli/trace/names.h"
#include "cli/trace/out.h"
#include "cli/trace/ring_reader.h"
#include "cli/trace/tick_map.h"

#define PROCESS_HELD 64

/* What was written, for who is told at the end. */
struct trace_sums {
	uint64_t launches, work, allocations, frees, denied, gate_waits, memory_waits, moves, lost;
};

struct traced_process {
	struct ring_reader reader;
	struct names names;
	int pid;
	char command[16];
	uint64_t launch_ns; /* that handing over a kernel takes, at the least, of late; 0: not known yet */
	/* Kernels of which nobody knows how long that took, by thread: the thread's next event bounds it. Kind 0: none. */
	struct trace_event held[PROCESS_HELD];
};

/* All that events are written by; all of it others'. */
struct trace_scene {
	struct out *out;
	const struct tick_map *map;
	const unsigned *device; /* the card's index of each device of the tenant ... */
	size_t device_count;
	uint64_t end_ns; /* of the trace: what begins later is left out */
	struct trace_sums *sums;
};

/* Writes what the process is called, and its place among the tracks. */
void traced_process_begin(struct traced_process *process, struct out *out);

/* Writes what is new up to the map's last moment; see ring_reader_drain(). -ENOMEM. */
int traced_process_write(struct traced_process *process, const struct trace_scene *scene,
			 uint64_t now_ns, bool is_last);

void traced_process_end(struct traced_process *process);
