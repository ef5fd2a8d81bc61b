/*
 * The cards of a node and what is taken of each, as compact as 40,000 of them want it.
 *
 *     card[i]   as src/policy/placement has them: what they have, and what is used of it, to be judged without a look-up
 *     use[i]    the sums behind that, exact whatever foreign annotations add up to
 *
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/shares.h"
#include "policy/placement/node.h"
#include "scheduler/request/quota.h"
#include "scheduler/util/string_map.h"

#define INVENTORY_CACHE_LINE 64 /* bytes, mostly: elsewhere it is only slower */

struct use;

struct inventory_use {
	uint64_t memory_mib, cores_pct, slots;
	uint64_t borrowed_pct; /* of time that is promised to others, or to nobody: no part of cores_pct */
	const char *mode; /* a word */
};

struct inventory {
	unsigned count;          /* at most PLACE_MAX_CARDS */
	struct place_card *card; /* uuid and type are words; owned, as are the others */
	struct inventory_use *use;
	const char *mode; /* that of all its cards; NULL: they differ, or nobody has looked */
	uint16_t *score;  /* of the link of cards i and j: score[i * count + j]; NULL: not known */
	unsigned unknown; /* holds that can't be read: nothing more is given of its cards */
	unsigned served;  /* the words that its kubelet serves: enum request_words of request.h */
	const struct use *seen; /* what is used of them in truth; NULL: nobody asks. The node's */
	struct string_map *words;
};

/* A node's annotations about its cards, NULL where one is absent, and the resource vocabularies that its kubelet serves. */
struct inventory_said {
	const char *cards, *scores, *cordon;
	unsigned served;
};

/*
 * Nothing is used of it yet. -ENODATA: it says nothing of cards. -EINVAL: what it says can't be true: a list that can't be
 * read, too many cards, one named twice, or with figures that no card has; -ENOMEM.
 */
int inventory_read(const struct inventory_said *said, struct string_map *words,
		   struct inventory *ret, struct error *err);
void inventory_free(struct inventory *inventory); /* leaves one without cards */
/* The same, to try something out. -ENOMEM. */
int inventory_copy(const struct inventory *from, struct inventory *ret);

/* It will be looked at in a moment. */
static inline void inventory_prefetch(const struct inventory *inventory)
{
	const char *card = (const char *)inventory->card;
	for (size_t at = 0; at < inventory->count * sizeof(*inventory->card);
	     at += INVENTORY_CACHE_LINE)
		__builtin_prefetch(card + at);
}

/* ---- what a pod has ---- */

enum inventory_stage {
	INVENTORY_APP,
	INVENTORY_INIT,    /* it has ended before the next container begins */
	INVENTORY_SIDECAR, /* an init container that goes on */
};

struct inventory_share {
	const char *card; /* a word */
	uint32_t memory_mib, cores_pct;
	uint16_t container;
	uint8_t stage; /* enum inventory_stage */
	uint8_t borrowed_pct;
};

#define INVENTORY_SHARES_MAX 512 /* of a pod */

struct inventory_hold {
	bool is_unknown; /* it can't be read: all cards of the node are closed while it is charged */
	unsigned count;
	struct inventory_share *share; /* in the containers' order; owned */
};

/* `stage`: of each of a pod's containers; those behind them are INVENTORY_APP. -EINVAL: too many; -ENOMEM. */
int inventory_hold_make(const struct kube_shares *shares, const uint8_t *stage, size_t containers,
			struct string_map *words, struct inventory_hold *ret, struct error *err);
void inventory_hold_free(struct inventory_hold *hold,
			 struct string_map *words); /* leaves an empty one */
/* How much of a card's time it borrows, as it is charged; of any card: `card` NULL. */
uint64_t inventory_hold_borrowed_pct(const struct inventory_hold *hold, const char *card);

/* Of all its cards together, whoever's they are, as each is charged. */
struct quota_amounts inventory_hold_sum(const struct inventory_hold *hold);

/*
 * Counts it as used, or as given back. A card is charged what its containers have of it at a time: the most of any init
 * container with the sidecars before it, or all others together. Cards that are not of this node are passed over.
 */
void inventory_charge(struct inventory *inventory, const struct inventory_hold *hold);
void inventory_discharge(struct inventory *inventory, const struct inventory_hold *hold);
