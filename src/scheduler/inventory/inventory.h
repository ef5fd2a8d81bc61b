/*
 * A node's cards and what is charged to each, compact because a cluster may have 40,000 cards. Not thread-safe.
 *
 *     card[i]   capacity and use, as src/policy/placement judges them
 *     use[i]    the exact sums behind the use, however large
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/shares.h"
#include "policy/placement/place_node.h"
#include "scheduler/request/quota.h"
#include "scheduler/util/string_map.h"

#define INVENTORY_CACHE_LINE 64 /* bytes; another size costs only speed */

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
	const char *mode; /* the mode of all cards; NULL if they differ or were not compared */
	/* Score of the link of cards i and j: score[i * count + j]; NULL if unknown. */
	uint16_t *score;
	/* Number of charged holds that are is_unknown; unless 0, none of the node's cards is assigned. */
	unsigned unknown;
	/* Vocabularies that the kubelet serves: bit mask of enum request_words (pod_request.h). */
	unsigned served;
	/* Measured use of the cards; belongs to the node. NULL if no pods are placed by use. */
	const struct use *seen;
	struct string_map *words;
};

/* A node's annotations about its cards (NULL if missing), and the resource names that its kubelet serves. */
struct inventory_source {
	const char *cards, *scores, *cordon;
	unsigned served;
};

/*
 * Reads the cards, with nothing charged. -ENODATA: no description of cards. -EINVAL: an impossible one (malformed, too many,
 * duplicates, figures that no card has). -ENOMEM.
 */
int inventory_read(const struct inventory_source *said, struct string_map *words,
		   struct inventory *ret, struct error *err);
void inventory_free(struct inventory *inventory); /* leaves an inventory without cards */
/* Makes a copy for trials. Returns 0 or -ENOMEM. */
int inventory_copy(const struct inventory *from, struct inventory *ret);

/* Prefetches the cards, which are read soon. */
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
	/* The pod's shares cannot be read: while this hold is charged, no card of the node is assigned. */
	bool is_unknown;
	unsigned count;
	struct inventory_share *share; /* in the order of the containers; owned */
};

/*
 * Makes a hold (the shares that a pod is charged). `stage`: each container's; later containers are INVENTORY_APP. Returns 0,
 * -EINVAL if there are too many shares, or -ENOMEM.
 */
int inventory_hold_make(const struct kube_shares *shares, const uint8_t *stage, size_t containers,
			struct string_map *words, struct inventory_hold *ret, struct error *err);
void inventory_hold_free(struct inventory_hold *hold,
			 struct string_map *words); /* leaves an empty hold */
/* Returns the compute that the hold borrows of a card (interned), as charged; NULL: of all. */
uint64_t inventory_hold_borrowed_pct(const struct inventory_hold *hold, const char *card);

struct quota_amounts inventory_hold_sum(const struct inventory_hold *hold);

/*
 * Charges or discharges a hold. A card is charged what runs at once: the largest init container with the sidecars before it, or
 * all other containers together. Cards that the node lacks are ignored.
 */
void inventory_charge(struct inventory *inventory, const struct inventory_hold *hold);
void inventory_discharge(struct inventory *inventory, const struct inventory_hold *hold);
