/*
 * Counts the kinds of requests that pods made lately, for policy/placement/room.h. Requests of one kind have the same number of
 * cards, memory, compute and lists of card types. A request counts once, when the model first stores its pod. Counts decay by
 * half every HISTOGRAM_HALF_LIFE requests, without a clock. If there are too many kinds, the one with the lowest count is
 * dropped. A kind's price is its fraction of all requests, divided by the room left for it: frequent kinds with little room are
 * expensive. Not thread-safe.
 */
#pragma once

#include "policy/placement/room.h"

#define HISTOGRAM_HALF_LIFE 1000
#define HISTOGRAM_ONCE 64

struct histogram {
	/* The kinds and their prices (policy/placement/room.h). The histogram owns the words of their lists. */
	struct place_histogram kinds;
	double count[PLACE_KINDS_MAX]; /* decayed number of requests, multiplied by `unit` */
	/* what a new request adds to its kind's count; grows with each request, so that older ones count less; at first 0 */
	double unit;
	const char **words[PLACE_KINDS_MAX];
	/* digests of kinds seen once while `kinds` was full; a kind seen again replaces the kind with the lowest count */
	uint64_t once[HISTOGRAM_ONCE];
	unsigned next_once;
};

/*
 * Returns 1 if the request's kind is new and got the index *ret_kind in `kinds`, perhaps that of a dropped kind. Returns 0 if
 * the kind has an index already, or gets none, and -ENOMEM if the request was not counted.
 */
int histogram_count(struct histogram *histogram, const struct place_request *request,
		    unsigned *ret_kind);
/* Sets each kind's price. room[k]: how many more requests of kind k the cluster's cards would serve. */
void histogram_price(struct histogram *histogram, const uint64_t room[PLACE_KINDS_MAX]);
void histogram_free(struct histogram *histogram);
