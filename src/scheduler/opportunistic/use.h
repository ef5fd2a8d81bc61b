/*
 * What a node's cards are used, as its allotd publishes it (kube/own/uses.h), and whether that still counts. Nobody's clock
 * but our own is asked: what a node says counts from when it was seen to change, for USE_FRESH_NS. So what a daemon that is
 * gone has left behind counts for nothing, also after a start of ours. Pure but for memory; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define USE_FRESH_NS \
	(UINT64_C(180) * 1000000000) /* three times as long as a node is silent at most by default */

struct inventory;

/* Of one card. What opportunistic pods do there is kept here as well: opportunistic.h. */
struct use_card {
	uint64_t id;    /* a digest of its UUID */
	bool is_said;   /* else its node does not name it */
	uint8_t rounds; /* of evictions, in a row */
	uint16_t peak_pct, now_pct, held_pct;
	uint32_t memory_mib;
	uint64_t pressed_ns; /* opportunistic pods have less than they asked for since then; 0: they do not */
	uint64_t cooldown_ns; /* no opportunistic pod comes until then */
};

struct use {
	unsigned count;         /* 0: nothing is known */
	struct use_card *card;  /* in the order of the node's inventory; owned */
	uint64_t said;          /* a digest of the annotation; 0: none was seen yet */
	uint64_t heard_ns;      /* when it changed last */
	bool is_moving;         /* it was seen to change */
	uint64_t cooldown_said; /* a digest of what was read by cooldown.h; 0: nothing was */
};

/*
 * The annotation as it is now; NULL: there is none. `inventory`: the node's cards, of which some may be others than before. What
 * was kept of cards that stay is kept. -EINVAL: it can't be read, and is as none; -ENOMEM.
 */
int use_hear(struct use *use, const char *text, const struct inventory *inventory, uint64_t now_ns,
	     struct error *err);
void use_free(struct use *use); /* leaves one of nothing */

/* Of the inventory's card i. NULL: it is not known, or no longer. `use` may be NULL. */
const struct use_card *use_of(const struct use *use, unsigned i, uint64_t now_ns);
