/*
 * The measured use of a node's cards, as the node's allotd publishes it in an annotation (kube/own/uses.h). Only our own clock
 * matters: a measurement is valid for USE_FRESH_NS after we saw the annotation change. So data left behind by a daemon that is
 * gone is never used, not even after a restart of the scheduler. Pure, except for memory; not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Three times the longest default interval between two reports of a node. */
#define USE_FRESH_NS (UINT64_C(180) * 1000000000)

struct inventory;

/* State of one card, including the state of its opportunistic pods (opportunistic.h). */
struct use_card {
	uint64_t id;    /* digest of the card's UUID */
	bool is_said;   /* false: the node does not report this card */
	uint8_t rounds; /* number of evictions in a row */
	uint16_t peak_pct, now_pct, held_pct;
	uint32_t memory_mib;
	uint64_t pressed_ns; /* since when opportunistic pods lack compute; 0 if they do not */
	/* End of the last cooldown; until then the card takes no opportunistic pods. */
	uint64_t cooldown_ns;
};

struct use {
	unsigned count;         /* 0 if nothing is known */
	struct use_card *card;  /* in the order of the node's inventory; owned */
	uint64_t said;          /* digest of the annotation; 0 if there is none */
	uint64_t heard_ns;      /* when the annotation last changed */
	bool is_moving;         /* the annotation was seen to change, so its daemon is alive */
	uint64_t cooldown_said; /* digest of the annotation that cooldown.h has read; 0 if none */
};

/*
 * Reads the present annotation; `text` is NULL if it is missing. `inventory` has the node's cards, which may have changed.
 * Keeps the state of cards that are still there. Returns -EINVAL if the annotation is malformed, which counts as missing; or
 * -ENOMEM.
 */
int use_hear(struct use *use, const char *text, const struct inventory *inventory, uint64_t now_ns,
	     struct error *err);
void use_free(struct use *use); /* leaves an empty structure */

/* Returns the use of the inventory's card i, or NULL if it is unknown or too old. `use` may be NULL. */
const struct use_card *use_of(const struct use *use, unsigned i, uint64_t now_ns);
