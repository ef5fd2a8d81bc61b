/*
 * How busy a node's cards are, as allotd measures it and writes it in an annotation (kube/own/node_cards.h). A measurement is
 * valid for USE_FRESH_NS after the scheduler saw the annotation change. So the measurement of a dead allotd soon becomes
 * invalid. A restarted scheduler ignores the annotation until it changes. No I/O and no clock; not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* allotd reports at least every 60 s if its setting kube_use_window is 5m. This is three times as long. */
#define USE_FRESH_NS (UINT64_C(180) * 1000000000)

struct inventory;

/* A card's measured use, and the state of its opportunistic pods (opportunistic.h). */
struct use_card {
	uint64_t id;      /* digest of the card's UUID */
	bool is_reported; /* the node's annotation has this card */
	uint8_t rounds;   /* number of cooldowns in a row (opportunistic_cooldown()) */
	/* measured by allotd; see struct kube_use (kube/own/node_cards.h) */
	uint16_t peak_pct, now_pct, held_pct;
	uint32_t memory_mib;
	uint64_t starved_since_ns; /* since when opportunistic pods lack compute; 0: they do not */
	/* end of the last cooldown; 0: there was none */
	uint64_t cooldown_ns;
};

struct use {
	unsigned count;           /* 0 until an annotation was read */
	struct use_card *card;    /* in the order of the node's inventory; owned */
	uint64_t digest;          /* digest of the annotation; 0 if there is none */
	uint64_t changed_ns;      /* when the annotation last changed */
	bool is_live;             /* the annotation changed after the first read: allotd runs */
	uint64_t cooldown_digest; /* digest of the cooldown annotation as last read; 0: not read */
};

/*
 * Reads the annotation (NULL: missing). Cards that `use` already has keep their cooldowns. Returns 0, -ENOMEM, or -EINVAL if
 * the text is malformed; it then counts as missing.
 */
int use_update(struct use *use, const char *text, const struct inventory *inventory,
	       uint64_t now_ns, struct error *err);
void use_free(struct use *use); /* leaves an empty structure */

/* Returns the use of card i; NULL if unknown or too old. `use` may be NULL. */
const struct use_card *use_of(const struct use *use, unsigned i, uint64_t now_ns);
