/* A process that keeps the card busy and tells how it fares: the survivors and holders of the storms. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Shared with the parent; one a process. */
struct load_figures {
	_Atomic uint64_t launches;
	_Atomic uint64_t longest_ns; /* a launch took at most; the parent may set it back to 0 */
	_Atomic uint64_t over_quota; /* allocations that should have been refused, and were not */
	_Atomic uint64_t refused;
	_Atomic bool runs;
	_Atomic bool stop;
};

struct load_options {
	unsigned kernel_us;
	unsigned batch;      /* launches between two synchronizations */
	uint64_t hold_bytes; /* allocated at the start; 0: none */
	uint64_t too_much;   /* asked for again and again; 0: never */
};

/* Starts the GPU and works until `stop`; the calling thread's whole life. Returns 0. */
int load_run(struct load_figures *figures, const struct load_options *options);
