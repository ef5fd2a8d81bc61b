/*
 * The cards of a node and what is charged to each, in compact form, because a cluster may have 40,000 cards.
 *
 *     card[i]   in the form of src/policy/placement: capacity and use, to be judged without further look-ups
 *     use[i]    the sums behind the use, exact whatever the annotations of other programs add up to
 *
 * Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/shares.h"
#include "policy/placement/place_node.h"
#include "scheduler/request/quota.h"
#include "scheduler/util/string_map.h"

#define INVENTORY_CACHE_LINE 64 /* bytes; a different size costs only speed */

struct use;

struct inventory_use {
	uint64_t memory_mib, cores_pct, slots;
	uint64_t borrowed_pct; /* borrowed compute, which is not part of cores_pct */
	const char *mode;      /* interned */
};

struct inventory {
	unsigned count;          /* at most PLACE_MAX_CARDS */
	struct place_card *card; /* uuid and type are interned; owned, like the next pointers */
	struct inventory_use *use;
	const char *mode; /* the mode of all cards; NULL if the modes differ or were not compared */
	/* Score of the link of cards i and j: score[i * count + j]; NULL if unknown. */
	uint16_t *score;
	/* Number of charged holds with is_unknown set; while there are any, no card of the node is assigned. */
	unsigned unknown;
	/* Vocabularies that the kubelet serves: bit mask of enum request_words (pod_request.h). */
	unsigned served;
	/* Measured use of the cards; belongs to the node. NULL if pods are not placed by use. */
	const struct use *seen;
	struct string_map *words;
};

/* A node's annotations about its cards, each NULL if missing, and the resource vocabularies that its kubelet serves. */
struct inventory_said {
	const char *cards, *scores, *cordon;
	unsigned served;
};

/*
 * Reads the cards, with nothing charged. Returns -ENODATA if the node does not describe any cards. Returns -EINVAL if the
 * description is impossible: a malformed list, too many cards, a duplicate, or figures that no card has. Returns -ENOMEM if
 * memory runs out.
 */
int inventory_read(const struct inventory_said *said, struct string_map *words,
		   struct inventory *ret, struct error *err);
void inventory_free(struct inventory *inventory); /* leaves an inventory without cards */
/* Makes a copy, for trials. Returns 0 or -ENOMEM. */
int inventory_copy(const struct inventory *from, struct inventory *ret);

/* Prefetches the cards, which will be read soon. */
static inline void inventory_prefetch(const struct inventory *inventory)
{
	const char *card = (const char *)inventory->card;
	for (size_t at = 0; at < inventory->count * sizeof(*inventory->card);
	     at += INVENTORY_CACHE_LINE)
		__builtin_prefetch(card + at);
}

/* ---- what a pod is charged ---- */

enum inventory_stage {
	INVENTORY_APP,
	INVENTORY_INIT,    /* ends before the next container begins */
	INVENTORY_SIDECAR, /* an init container that keeps running */
};

struct inventory_share {
	const char *card; /* interned */
	uint32_t memory_mib, cores_pct;
	uint16_t container;
	uint8_t stage; /* enum inventory_stage */
	uint8_t borrowed_pct;
};

#define INVENTORY_SHARES_MAX 512 /* per pod */

struct inventory_hold {
	/* The pod's shares cannot be read; while this hold is charged, no card of the node is assigned. */
	bool is_unknown;
	unsigned count;
	struct inventory_share *share; /* in the order of the containers; owned */
};

/*
 * Makes a hold from shares. `stage` has the stage of each of the pod's containers; later containers are INVENTORY_APP.
 * Returns 0, -EINVAL if there are too many shares, or -ENOMEM.
 */
int inventory_hold_make(const struct kube_shares *shares, const uint8_t *stage, size_t containers,
			struct string_map *words, struct inventory_hold *ret, struct error *err);
void inventory_hold_free(struct inventory_hold *hold,
			 struct string_map *words); /* leaves an empty hold */
/*
 * Returns the compute of a card that the hold borrows, as it is charged. `card` is an interned string. If NULL, returns the sum
 * over all cards.
 */
uint64_t inventory_hold_borrowed_pct(const struct inventory_hold *hold, const char *card);

/* Returns the sum of what the hold is charged on all its cards, on whatever nodes they are. */
struct quota_amounts inventory_hold_sum(const struct inventory_hold *hold);

/*
 * Adds or removes the charge of a hold. A card is charged for the containers that use it at the same time: the largest init
 * container together with the sidecars before it, or all other containers together. Cards that are not on this node are
 * ignored.
 */
void inventory_charge(struct inventory *inventory, const struct inventory_hold *hold);
void inventory_discharge(struct inventory *inventory, const struct inventory_hold *hold);
