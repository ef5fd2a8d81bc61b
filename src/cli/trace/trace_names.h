/* The names of a process's kernels, driver calls and threads, and the numbers of its streams. No I/O, but allocates memory. */
#pragma once

#include <stddef.h>

#include "abi/shm/trace_ring.h"

#define NAMES_STREAMS 1024 /* a power of two; further streams get no number */

/* A name applies from the time `since` (ticks) until the key's next name. */
struct named {
	uint64_t key, since;
	uint32_t kind;
	int32_t before; /* index of the key's previous name; negative if none */
	char *text;
};

struct names {
	struct named named[TRACE_NAMES];
	size_t count;
	/* hash table: index + 1 of a key's latest name; 0 if empty */
	int32_t by_key[2 * TRACE_NAMES];
	struct {
		uint64_t handle;
		uint32_t number; /* 0 if the place is empty */
	} stream[NAMES_STREAMS];
	uint32_t stream_count;
};

/* Adds a name. Returns 0 or -ENOMEM. Leaves out names of an unknown kind or beyond TRACE_NAMES. */
int names_add(struct names *names, const struct trace_name *name);

/* Returns the name that the key had at the time `ticks`, or its first name if that came later; NULL if it got none. */
const char *names_find(const struct names *names, enum trace_name_kind kind, uint64_t key,
		       uint64_t ticks);

/* Returns the stream's number, counted from 1 in the order of first use; 0 if there are too many streams. */
uint32_t names_stream_number(struct names *names, uint64_t handle);

void names_clear(struct names *names);
