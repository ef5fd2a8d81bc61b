/*
 * Room: how many more of each kind of request would still fit, and what a placement takes of it.
 *
 * Where it is known what is asked for, it is known what a remainder is good for. The kinds of requests that there are, a
 * card's or a node's room for each, and what a request of each kind that would fit is worth are plain numbers; a placement
 * costs, summed over all kinds, the requests for which there is no longer room, each by its price. With a price that grows as
 * a kind's room becomes scarce (scheduler/request/workload_histogram.h), what is rare and asked for is kept for those who can use nothing else: cards
 * of a type, and nodes that are free as a whole. ("Beware of Fragmentation", USENIX ATC 2023, which measures what the kinds
 * can't use, has the same price for all of them, and counts a remainder that serves a kind once as wholly of use.)
 *
 * Pure; thread safe.
 */
#pragma once

#include "policy/placement/request.h"

#define PLACE_KINDS_MAX 48

struct place_kind {
	struct place_request request; /* its UUIDs, NUMA node and order of cards count for nothing */
	double price;                 /* of the room for one */
};

struct place_histogram {
	unsigned count;
	struct place_kind kind[PLACE_KINDS_MAX];
};

/* How many shares of each kind a card would serve, each kind alone on it. */
struct place_fits {
	uint16_t of[PLACE_KINDS_MAX];
};

/* The same of several cards: of each kind the sum, and how many cards serve any. */
struct place_tally {
	uint32_t shares[PLACE_KINDS_MAX];
	uint16_t cards[PLACE_KINDS_MAX];
};

/* Of one kind. */
uint16_t place_kind_fits(const struct place_card *card, const struct place_request *kind);
void place_card_fits(const struct place_histogram *histogram, const struct place_card *card,
		     struct place_fits *ret);
void place_tally_add(const struct place_histogram *histogram, const struct place_fits *card,
		     struct place_tally *tally);
/* One card of it is as `now`, no longer as `before`. */
void place_tally_change(const struct place_histogram *histogram, const struct place_fits *before,
			const struct place_fits *now, struct place_tally *tally);

/* Requests of a kind that the cards of a tally would serve: one that wants several cards wants as many different ones. */
static inline uint32_t place_room(const struct place_histogram *histogram,
				  const struct place_tally *tally, unsigned kind)
{
	unsigned count = histogram->kind[kind].request.count;
	if (count == 1)
		return tally->shares[kind];
	return tally->cards[kind] < count ? 0 : tally->shares[kind] / count;
}

/*
 * What is lost, by the kinds' prices, where one card of `all` changes from `before` to `now`; negative where something is
 * gained.
 */
double place_card_loss(const struct place_histogram *histogram, const struct place_tally *all,
		       const struct place_fits *before, const struct place_fits *now);

/* The card with one share of the request on it. */
struct place_card place_with_share(const struct place_card *card,
				   const struct place_request *request);

/* Of each card of a node, what a share of the request would take of the node's room. */
void place_room_losses(const struct place_histogram *histogram, const struct place_node *node,
		       const struct place_request *request, double ret[PLACE_MAX_CARDS]);
