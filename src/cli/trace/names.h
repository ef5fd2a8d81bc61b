/* What a process's functions, entry points and threads are called, and its streams' numbers. Pure but for memory. */
#pragma once

#include <stddef.h>

#include "abi/shm/trace.h"

#define NAMES_STREAMS 1024 /* a power of two; further streams have no number */

struct named {
	uint64_t key, since;
	uint32_t kind;
	int32_t before; /* the one of that key before this one; negative: none */
	char *text;
};

struct names {
	struct named named[TRACE_NAMES];
	size_t count;
	int32_t by_key[2 * TRACE_NAMES]; /* index + 1; 0: empty */
	struct {
		uint64_t handle;
		uint32_t number; /* 0: empty */
	} stream[NAMES_STREAMS];
	uint32_t stream_count;
};

/* -ENOMEM. One that there is no room for, or of no known kind, is left out. */
int names_add(struct names *names, const struct trace_name *name);

/* What the key was called at that moment (ticks); NULL: nobody said. */
const char *names_find(const struct names *names, enum trace_name_kind kind, uint64_t key,
		       uint64_t ticks);

/* The stream's number in the order of their first use, from 1; 0: there are too many. */
uint32_t names_stream(struct names *names, uint64_t handle);

void names_clear(struct names *names);
