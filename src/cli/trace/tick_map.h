/*
 * Ticks of a trace's clock as nanoseconds since its begin, by moments that the daemon read on both clocks. Between two
 * moments time is linear. A later moment never changes the time of ticks before the last one, and time never goes
 * backwards: so slices that were written in different rounds nest as they did in the process. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tick_moment {
	uint64_t ticks, ns;
};

struct tick_map {
	struct tick_moment *moment; /* both of their values rise; the first is the begin */
	size_t count;               /* 1 or more, once begun */
	size_t capacity;
};

/* An empty map gets its begin. -ENOMEM. */
int tick_map_begin(struct tick_map *map, uint64_t ticks, uint64_t ns);

/* Adds a later moment; one that is not later on both clocks changes nothing. -ENOMEM. */
int tick_map_add(struct tick_map *map, uint64_t ticks, uint64_t ns);

/* Nanoseconds since the begin; negative: before it. Before the first moment and after the last one it is an estimate. */
int64_t tick_map_ns(const struct tick_map *map, uint64_t ticks);

/* Of the last moment: up to there times are final. */
uint64_t tick_map_last_ticks(const struct tick_map *map);

/* Leaves an empty map. */
void tick_map_clear(struct tick_map *map);
