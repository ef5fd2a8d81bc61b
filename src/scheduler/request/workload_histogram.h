/*
 * What is asked for: the kinds of requests that pods have made lately, each with how often, as policy/placement/room.h wants them.
 *
 * Nobody configures it: each request is counted when its pod is seen for the first time. What was counted fades, by half with
 * each HISTOGRAM_HALF_LIFE requests that come after it, so that no clock takes part. Where there are more kinds than have a place,
 * the one that counts least goes. A kind's price is its part of all requests over the room that is left for it: what is
 * scarce and asked for is dear, and the whole of a kind's room is worth its part of the requests, however much it is.
 *
 * One thread.
 */
#pragma once

#include "policy/placement/room.h"

#define HISTOGRAM_HALF_LIFE 1000
#define HISTOGRAM_ONCE 64

struct histogram {
	struct place_histogram kinds; /* as policy/placement/room.h has it; their words are owned */
	double count[PLACE_KINDS_MAX]; /* requests of each kind, fading, in `unit`s */
	double unit; /* what one request adds now; it grows, so that older ones fade; 0: none yet */
	const char **words[PLACE_KINDS_MAX];
	uint64_t once[HISTOGRAM_ONCE]; /* digests of kinds that came once while all places were taken */
	unsigned next_once;
};

/*
 * Counts a request. Returns 1 and the place that has become this kind's, which was free or had one that had to go; 0:
 * the kind was there already, or has none; -ENOMEM: it is not counted.
 */
int histogram_count(struct histogram *histogram, const struct place_request *request,
		    unsigned *ret_kind);
/* Of each kind its price, by the room that is left for it. */
void histogram_price(struct histogram *histogram, const uint64_t room[PLACE_KINDS_MAX]);
void histogram_free(struct histogram *histogram); /* leaves one of zeros, which is an empty one */
