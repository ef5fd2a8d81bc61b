/*
 * Room is the number of further requests of each kind that would still fit. This module counts it, and computes how much of it
 * a placement takes. Requests of one kind are equal. No I/O, no static data; thread safe.
 *
 * The cost of a placement is a sum over all kinds: the number of requests that no longer fit, times the kind's price. The price
 * grows as a kind's room becomes scarce (scheduler/request/workload_histogram.h). So scarce room, such as GPUs of a rare type
 * or wholly free nodes, is kept for the requests that can use nothing else.
 *
 * ("Beware of Fragmentation", USENIX ATC 2023, measures the room that the kinds cannot use. It has one price for all kinds. If
 * one request of a kind fits on a GPU, the paper counts all free room of the GPU as usable by that kind.)
 */
#pragma once

#include "policy/placement/place_request.h"

#define PLACE_KINDS_MAX 48

struct place_kind {
	struct place_request request; /* has no UUIDs, NUMA binding or evaluators */
	double price;                 /* price of the room for one request of this kind */
};

struct place_histogram {
	unsigned count;
	struct place_kind kind[PLACE_KINDS_MAX];
};

/* For each kind: how many shares (parts of a request on one GPU) a GPU would serve if it served only this kind. */
struct place_fits {
	uint16_t of[PLACE_KINDS_MAX];
};

/* For each kind: how many shares the GPUs of a set would serve, and how many of these GPUs would serve at least one. */
struct place_tally {
	uint32_t shares[PLACE_KINDS_MAX];
	uint16_t cards[PLACE_KINDS_MAX];
};

/* Count the shares that a GPU would serve, of one kind and of each kind in the histogram. */
uint16_t place_kind_fits(const struct place_card *card, const struct place_request *kind);
void place_card_fits(const struct place_histogram *histogram, const struct place_card *card,
		     struct place_fits *ret);
void place_tally_add(const struct place_histogram *histogram, const struct place_fits *card,
		     struct place_tally *tally);
/* One of the tally's GPUs changes from `before` to `now`. */
void place_tally_change(const struct place_histogram *histogram, const struct place_fits *before,
			const struct place_fits *now, struct place_tally *tally);

/* How many requests of a kind a tally's GPUs would serve. A request for several GPUs needs different GPUs. */
static inline uint32_t place_room(const struct place_histogram *histogram,
				  const struct place_tally *tally, unsigned kind)
{
	unsigned count = histogram->kind[kind].request.count;
	if (count == 1)
		return tally->shares[kind];
	return tally->cards[kind] < count ? 0 : tally->shares[kind] / count;
}

/* The loss of room, each kind's at its price, if a GPU of the tally `all` changes from `before` to `now`. Negative: a gain. */
double place_card_loss(const struct place_histogram *histogram, const struct place_tally *all,
		       const struct place_fits *before, const struct place_fits *now);

/* Returns the GPU as it would be with one share of the request on it. */
struct place_card place_with_share(const struct place_card *card,
				   const struct place_request *request);

/* For each GPU: how much of the node's room would be lost if this GPU got a share of the request. */
void place_room_losses(const struct place_histogram *histogram, const struct place_node *node,
		       const struct place_request *request, double ret[PLACE_MAX_CARDS]);
