/*
 * Converts ticks of a trace's clock to nanoseconds since the trace began. A moment is a pair of ticks and nanoseconds that the
 * daemon read at the same time; between two moments, time is linear. Adding a moment changes no earlier time, and time never
 * goes backwards, so nested events stay nested. Not thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tick_moment {
	uint64_t ticks, ns;
};

struct tick_map {
	struct tick_moment *moment; /* ascending in both values; the first is when the trace began */
	size_t count;               /* at least 1 after tick_map_begin() */
	size_t capacity;
};

/* Adds the first moment, when the trace began, to an empty map. Returns -ENOMEM if out of memory. */
int tick_map_begin(struct tick_map *map, uint64_t ticks, uint64_t ns);

/* Adds a later moment; ignored unless later on both clocks. Returns 0 or -ENOMEM. */
int tick_map_add(struct tick_map *map, uint64_t ticks, uint64_t ns);

/*
 * Returns the time of `ticks` in nanoseconds since the first moment. The time is an estimate before the first moment, where it
 * is negative, and after the last one.
 */
int64_t tick_map_ns(const struct tick_map *map, uint64_t ticks);

/* Returns the ticks of the moment that was added last. For ticks up to these, the result of tick_map_ns() no longer changes. */
uint64_t tick_map_last_ticks(const struct tick_map *map);

void tick_map_clear(struct tick_map *map);
