/* Ticks of a trace's clock as nanoseconds since its begin, by moments that the daemon read on both. Pure. */
#ifndef ALLOT_CLI_TRACE_TICK_MAP_H
#define ALLOT_CLI_TRACE_TICK_MAP_H

#include <stdint.h>

struct tick_map {
	uint64_t first_ticks, first_ns; /* the begin */
	uint64_t last_ticks, last_ns;   /* the last moment told */
	double ns_per_tick;
};

static inline struct tick_map tick_map_begin(uint64_t ticks, uint64_t ns)
{
	return (struct tick_map){ ticks, ns, ticks, ns, 0 };
}

/* A later moment. The rate is over all of the time, so that it gets the better the longer it lasts. */
static inline void tick_map_add(struct tick_map *map, uint64_t ticks, uint64_t ns)
{
	if (ticks <= map->first_ticks || ns <= map->first_ns)
		return;
	map->ns_per_tick = (double)(ns - map->first_ns) / (double)(ticks - map->first_ticks);
	map->last_ticks = ticks;
	map->last_ns = ns;
}

/* Nanoseconds since the begin; negative: before it. From the last moment, as doubles keep that exact. */
static inline int64_t tick_map_ns(const struct tick_map *map, uint64_t ticks)
{
	double from_last = (double)(int64_t)(ticks - map->last_ticks) * map->ns_per_tick;

	/* What a process made up: further than any clock. */
	if (from_last > 4e18 || from_last < -4e18)
		return 0;
	return (int64_t)(map->last_ns - map->first_ns) + (int64_t)from_last;
}

#endif
