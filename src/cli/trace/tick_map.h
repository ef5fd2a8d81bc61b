/*
 * Converts ticks of a trace's clock (abi/shm/trace_clock.h) to nanoseconds since the trace began. A moment is a pair of ticks
 * and nanoseconds that the daemon read at once; between two moments, time counts as linear. A new moment does not change the
 * results for ticks before the last one, so nested events stay nested. Not thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tick_moment {
	uint64_t ticks, ns;
};

struct tick_map {
	/* ascending in both values; the first is when the trace began */
	struct tick_moment *moment;
	size_t count; /* at least 1 after tick_map_begin() */
	size_t capacity;
};

/* Adds the first moment, when the trace began, to an empty map. Returns -ENOMEM if out of memory. */
int tick_map_begin(struct tick_map *map, uint64_t ticks, uint64_t ns);

/* Adds a later moment; ignored unless later on both clocks. Returns 0 or -ENOMEM. */
int tick_map_add(struct tick_map *map, uint64_t ticks, uint64_t ns);

/*
 * Returns nanoseconds since the first moment. The result is an estimate for ticks before the first moment (negative) and after
 * the last. It is 0 if the map has only one moment, or if the ticks are so far away that they must be wrong.
 */
int64_t tick_map_ns(const struct tick_map *map, uint64_t ticks);

/* Returns the ticks of the last moment. Up to these ticks, results of tick_map_ns() no longer change. */
uint64_t tick_map_last_ticks(const struct tick_map *map);

void tick_map_clear(struct tick_map *map);
