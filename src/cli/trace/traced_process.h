/* Writes the events in a traced process's ring (abi/shm/trace_ring.h) as events of its threads. Not thread safe. */
#pragma once

#include "cli/trace/trace_names.h"
#include "cli/trace/out.h"
#include "cli/trace/ring_reader.h"
#include "cli/trace/tick_map.h"

#define PROCESS_HELD 64

/* counts for the summary at the end */
struct trace_sums {
	uint64_t launches, work, allocations, frees, denied, gate_waits, memory_waits, lost;
};

struct traced_process {
	struct ring_reader reader;
	struct names names;
	int pid;
	char command[16];
	uint64_t launch_ns; /* shortest duration of a recent launch; 0 if unknown */
	/*
	 * Kernels of unknown length. A thread's kernel is at index thread modulo PROCESS_HELD. It is written when the thread's
	 * next event limits how long it can have lasted. An element of kind 0 has no kernel.
	 */
	struct trace_event held[PROCESS_HELD];
};

struct trace_scene {
	struct out *out;
	const struct tick_map *map;
	const unsigned *device; /* for each device of the tenant, the index of its GPU */
	size_t device_count;
	uint64_t end_ns; /* since the trace began; events that begin later are left out */
	struct trace_sums *sums;
};

void traced_process_begin(struct traced_process *process, struct out *out);

/* Writes the new events that ended before scene->map's last moment; with is_last, also later ones. Returns 0 or -ENOMEM. */
int traced_process_write(struct traced_process *process, const struct trace_scene *scene,
			 uint64_t now_ns, bool is_last);

void traced_process_end(struct traced_process *process);
