/*
 * The cards of a node and what is taken of each, as compact as 40,000 of them want it.
 *
 *     card[i]   as src/policy/placement has them: what they have, and what is used of it, to be judged without a look-up
 *     use[i]    the sums behind that, exact whatever foreign annotations add up to
 *
 * One thread.
 */
#ifndef ALLOT_SCHEDULER_STOCK_STOCK_H
#define ALLOT_SCHEDULER_STOCK_STOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/shares.h"
#include "policy/placement/node.h"
#include "scheduler/request/quota.h"
#include "scheduler/util/table.h"

#define STOCK_CACHE_LINE 64 /* bytes, mostly: elsewhere it is only slower */

struct use;

struct stock_use {
	uint64_t memory_mib, cores_pct, slots;
	uint64_t borrowed_pct; /* of time that is promised to others, or to nobody: no part of cores_pct */
	const char *mode; /* a word */
};

struct stock {
	unsigned count;          /* at most PLACE_MAX_CARDS */
	struct place_card *card; /* uuid and type are words; owned, as are the others */
	struct stock_use *use;
	const char *mode; /* that of all its cards; NULL: they differ, or nobody has looked */
	uint16_t *score;  /* of the link of cards i and j: score[i * count + j]; NULL: not known */
	unsigned unknown; /* holds that can't be read: nothing more is given of its cards */
	unsigned served;  /* the words that its kubelet serves: enum request_words of request.h */
	const struct use *seen; /* what is used of them in truth; NULL: nobody asks. The node's */
	struct table *words;
};

/* A node's annotations about its cards, NULL where one is absent, and the resource vocabularies that its kubelet serves. */
struct stock_said {
	const char *cards, *scores, *cordon;
	unsigned served;
};

/*
 * Nothing is used of it yet. -ENODATA: it says nothing of cards. -EINVAL: what it says can't be true: a list that can't be
 * read, too many cards, one named twice, or with figures that no card has; -ENOMEM.
 */
int stock_read(const struct stock_said *said, struct table *words, struct stock *ret,
	       struct error *err);
void stock_free(struct stock *stock); /* leaves one without cards */
/* The same, to try something out. -ENOMEM. */
int stock_copy(const struct stock *from, struct stock *ret);

/* It will be looked at in a moment. */
static inline void stock_prefetch(const struct stock *stock)
{
	const char *card = (const char *)stock->card;
	for (size_t at = 0; at < stock->count * sizeof(*stock->card); at += STOCK_CACHE_LINE)
		__builtin_prefetch(card + at);
}

/* ---- what a pod has ---- */

enum stock_stage {
	STOCK_APP,
	STOCK_INIT,    /* it has ended before the next container begins */
	STOCK_SIDECAR, /* an init container that goes on */
};

struct stock_share {
	const char *card; /* a word */
	uint32_t memory_mib, cores_pct;
	uint16_t container;
	uint8_t stage; /* enum stock_stage */
	uint8_t borrowed_pct;
};

#define STOCK_SHARES_MAX 512 /* of a pod */

struct stock_hold {
	bool is_unknown; /* it can't be read: all cards of the node are closed while it is charged */
	unsigned count;
	struct stock_share *share; /* in the containers' order; owned */
};

/* `stage`: of each of a pod's containers; those behind them are STOCK_APP. -EINVAL: too many; -ENOMEM. */
int stock_hold_make(const struct kube_shares *shares, const uint8_t *stage, size_t containers,
		    struct table *words, struct stock_hold *ret, struct error *err);
void stock_hold_free(struct stock_hold *hold, struct table *words); /* leaves an empty one */
/* How much of a card's time it borrows, as it is charged; of any card: `card` NULL. */
uint64_t stock_hold_borrowed_pct(const struct stock_hold *hold, const char *card);

/* Of all its cards together, whoever's they are, as each is charged. */
struct quota_amounts stock_hold_sum(const struct stock_hold *hold);

/*
 * Counts it as used, or as given back. A card is charged what its containers have of it at a time: the most of any init
 * container with the sidecars before it, or all others together. Cards that are not of this node are passed over.
 */
void stock_charge(struct stock *stock, const struct stock_hold *hold);
void stock_discharge(struct stock *stock, const struct stock_hold *hold);

#endif
