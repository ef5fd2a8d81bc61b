/*
 * The kinds of requests that pods have made lately and how often, for policy/placement/room.h.
 *
 * No configuration is needed: each request is counted when its pod is first seen. Counts decay by half with each
 * HISTOGRAM_HALF_LIFE further requests, so that no clock is needed. If there are too many kinds, the kind with the lowest
 * count is dropped. The price of a kind is its fraction of all requests divided by the room left for it. So a kind that is
 * requested often and has little room is expensive, and the whole room of a kind is worth its fraction of the requests.
 *
 * Not thread-safe.
 */
#pragma once

#include "policy/placement/room.h"

#define HISTOGRAM_HALF_LIFE 1000
#define HISTOGRAM_ONCE 64

struct histogram {
	/* As in policy/placement/room.h; the histogram owns their words. */
	struct place_histogram kinds;
	double count[PLACE_KINDS_MAX]; /* decayed number of requests of each kind, in `unit`s */
	/* What one request adds now; grows, so that older requests count less; 0 before the first request. */
	double unit;
	const char **words[PLACE_KINDS_MAX];
	/* Digests of kinds that came once while all places in `kinds` were taken; the second time a kind gets a place. */
	uint64_t once[HISTOGRAM_ONCE];
	unsigned next_once;
};

/*
 * Counts a request. Returns 1 if its kind is new and has got a place: *ret_kind, which may have belonged to a kind that was
 * dropped. Returns 0 if the kind had a place already or gets none, or -ENOMEM if the request is not counted.
 */
int histogram_count(struct histogram *histogram, const struct place_request *request,
		    unsigned *ret_kind);
/* Sets the price of each kind from the room left for the kind. */
void histogram_price(struct histogram *histogram, const uint64_t room[PLACE_KINDS_MAX]);
void histogram_free(struct histogram *histogram); /* leaves an empty, zeroed histogram */
