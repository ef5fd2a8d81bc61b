#include "cli/trace/tick_map.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_CAPACITY 64
#define FURTHEST_NS 4e18 /* a longer time can only come from wrong ticks */

static int append(struct tick_map *map, uint64_t ticks, uint64_t ns)
{
	if (map->count == map->capacity) {
		size_t capacity = map->capacity ? 2 * map->capacity : FIRST_CAPACITY;
		struct tick_moment *moment = realloc(map->moment, capacity * sizeof(*map->moment));

		if (!moment)
			return -ENOMEM;
		map->moment = moment;
		map->capacity = capacity;
	}
	map->moment[map->count++] = (struct tick_moment){ ticks, ns };
	return 0;
}

int tick_map_begin(struct tick_map *map, uint64_t ticks, uint64_t ns)
{
	return append(map, ticks, ns);
}

int tick_map_add(struct tick_map *map, uint64_t ticks, uint64_t ns)
{
	const struct tick_moment *last = &map->moment[map->count - 1];

	return ticks > last->ticks && ns > last->ns ? append(map, ticks, ns) : 0;
}

static double ns_per_tick(const struct tick_moment *from, const struct tick_moment *to)
{
	return (double)(to->ns - from->ns) / (double)(to->ticks - from->ticks);
}

static size_t moment_before(const struct tick_map *map, uint64_t ticks)
{
	size_t low = 0, high = map->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (map->moment[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int64_t tick_map_ns(const struct tick_map *map, uint64_t ticks)
{
	size_t last = map->count - 1, i = moment_before(map, ticks);
	const struct tick_moment *first = &map->moment[0], *from = &map->moment[i];

	if (!last)
		return 0;
	/* After the last moment, the mean rate of the whole trace is the most exact. */
	double rate = i == last ? ns_per_tick(first, from) : ns_per_tick(from, from + 1);
	/* Compute from the last moment before `ticks`: a double holds small differences exactly. */
	double ns = (double)(int64_t)(ticks - from->ticks) * rate;

	if (ns > FURTHEST_NS || ns < -FURTHEST_NS)
		return 0;
	return (int64_t)(from->ns - first->ns) + (int64_t)ns;
}

uint64_t tick_map_last_ticks(const struct tick_map *map)
{
	return map->moment[map->count - 1].ticks;
}

void tick_map_clear(struct tick_map *map)
{
	free(map->moment);
	*map = (struct tick_map){ 0 };
}
