/*
 * A node's GPUs (cards), and what is charged to each, that is, counted as used. Compact, because a cluster may have 40,000
 * cards. Not thread-safe.
 *
 *     card[i]   capacity and use, as src/policy/placement judges them
 *     use[i]    the exact sums of what is charged to card i; card[i] has them capped to its narrower fields
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

/* Sums of what is charged to one card. slots: number of shares. */
struct inventory_use {
	uint64_t memory_mib, cores_pct, slots;
	/* compute that opportunistic pods borrow (opportunistic.h); not part of cores_pct */
	uint64_t borrowed_pct;
	const char *mode; /* the card's mode, such as hami-core or mig; interned */
};

struct inventory {
	unsigned count;          /* at most PLACE_MAX_CARDS */
	struct place_card *card; /* owned, as are use and score; uuid and type are interned */
	struct inventory_use *use;
	const char *mode; /* of all cards; NULL if they differ or were not compared */
	/* score[i * count + j]: of the link of cards i and j, higher for nearer cards (place_link_score()); NULL if unknown */
	uint16_t *score;
	/* number of charged pods whose shares cannot be read; while above 0, no card of the node is assigned */
	unsigned unknown;
	/* resource names that the node's kubelet serves: bit mask of enum request_names (pod_request.h) */
	unsigned served_names;
	/* measured use, of the model's node; NULL if place_by_use is off, or for a Node object in a request */
	const struct use *seen;
	struct string_map *strings;
};

/* a node's annotations about its cards (NULL if missing), and `served_names` of struct inventory */
struct inventory_source {
	const char *cards, *scores, *cordon;
	unsigned served_names;
};

/*
 * Reads the cards, with nothing charged. Returns 0, -ENOMEM, or -ENODATA if there is no description of cards. Returns -EINVAL
 * if the description is impossible (malformed, too many cards, duplicates, figures that no card has).
 */
int inventory_read(const struct inventory_source *source, struct string_map *strings,
		   struct inventory *ret, struct error *err);
void inventory_free(struct inventory *inventory); /* leaves an inventory without cards */
/* Charging shares to the copy does not change the original. Returns 0 or -ENOMEM. */
int inventory_copy(const struct inventory *from, struct inventory *ret);

static inline void inventory_prefetch(const struct inventory *inventory)
{
	const char *card = (const char *)inventory->card;
	for (size_t at = 0; at < inventory->count * sizeof(*inventory->card);
	     at += INVENTORY_CACHE_LINE)
		__builtin_prefetch(card + at);
}

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

#define INVENTORY_SHARES_MAX 512 /* of one pod */

struct inventory_shares {
	/* the pod's shares cannot be read: while they are charged, no card of the node is assigned */
	bool is_unknown;
	unsigned count;
	struct inventory_share *share; /* in the order of the containers; owned */
};

/*
 * Makes the shares that a pod is charged. stage[i] is container i's stage (enum inventory_stage), for the first `containers`
 * containers; further ones are INVENTORY_APP. Returns 0, -EINVAL if there are too many shares, or -ENOMEM.
 */
int inventory_shares_make(const struct kube_shares *list, const uint8_t *stage, size_t containers,
			  struct string_map *strings, struct inventory_shares *ret,
			  struct error *err);
void inventory_shares_free(struct inventory_shares *shares,
			   struct string_map *strings); /* leaves no shares */
/* Returns the percent of compute that the shares borrow of `card`, an interned UUID; of all cards if `card` is NULL. */
uint64_t inventory_shares_borrowed_pct(const struct inventory_shares *shares, const char *card);

struct quota_amounts inventory_shares_sum(const struct inventory_shares *shares);

/*
 * Charges each card the most that the pod's shares on it use at once: those of an init container and of the sidecars started
 * before it, or those of all containers that are no init containers, sidecars included. Skips unknown cards.
 */
void inventory_charge(struct inventory *inventory, const struct inventory_shares *shares);
void inventory_discharge(struct inventory *inventory, const struct inventory_shares *shares);
