/*
 * Whom to freeze at the start of its GPU work, and in which order to thaw: Algorithm 2 of
 * Gil et al. (docs/reference/seeds.md) on several GPUs, with what it leaves open made definite.
 *
 *     start ---> ASKING --- room ---------------------------------> STARTING ---> SETTLED
 *       |          |                                                   ^   memory has not changed
 *       |          +-- none -------------------> WAITING --- its turn -+   for settle_ns
 *       +--- room on a card as read just now ---------------------------^
 *
 * - Room: on a card that it may use there is free what it lacks of `threshold_bytes`, beyond what each that
 *   is STARTING there still lacks; and nobody WAITS for that card. Where nobody works who might end there
 *   is always room: more will never be free. (So those that were seen late, and stand still while they
 *   hold some, don't wait for each other.) Who has its threshold already is let be.
 * - ASKING: the cards' figures are too old to tell. It stands still until they have been read, some
 *   milliseconds, and goes on then if there is room.
 * - WAITING ones go one by one, by policy/memory/order.h: least faded use first, nobody passed for ever. The
 *   next goes when none is STARTING on a card that both may use. An overdue one that does not fit
 *   keeps its cards from those behind it.
 * - SETTLED ones are never frozen: what they hold would be held for nothing.
 *
 * What this can promise: as long as no container needs more than threshold_bytes, or pauses for settle_ns
 * before it has what it needs, no allocation of theirs fails for want of memory. Of one that may use
 * several cards only if it takes one with room, as the paper has it: any will do.
 *
 * Pure, plain data; times are arguments, of one clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/memory/order.h"

#define FREEZE_MAX_CARDS 64
/*
 * One that was let go and holds no memory yet counts as settled after so many settle_ns; one that holds less than
 * half of the threshold, a context perhaps, after so many. (On a busy machine with an H200 one that paused for longer
 * than settle_ns between the two failed, as the next one had been let go.)
 */
#define FREEZE_EMPTY_SETTLES 10
#define FREEZE_SHORT_SETTLES 4

enum freeze_phase { FREEZE_NONE, FREEZE_ASKING, FREEZE_WAITING, FREEZE_STARTING, FREEZE_SETTLED };

struct freeze_config {
	uint64_t threshold_bytes; /* the paper's REQUIRED_MEMORY_THRESHOLD */
	uint64_t settle_ns;
	struct order_bounds bounds;
};

struct freeze_card {
	uint64_t free_bytes;
	bool is_empty; /* nobody holds memory on it but the items */
};

/* A container with GPU work. */
struct freeze_item {
	enum freeze_phase phase; /* changed by the calls below alone */
	bool by_hand;            /* frozen by hand: not thawed by order, and in nobody's way */
	uint64_t cards;          /* bit i: it may use card i */
	struct order_key key;    /* while it waits */
	uint64_t held_bytes;     /* on all cards: see freeze_note_memory() */
	uint64_t changed_ns;     /* when that changed, or it was let go */
	uint64_t begun_ns;       /* when it was let go */
};

/* Is it to stand still, as far as this policy goes? */
bool freeze_is_held(const struct freeze_item *item);

/* What it holds now. */
void freeze_note_memory(struct freeze_item *item, uint64_t held_bytes, uint64_t now_ns);

/*
 * `item` (one of the `count` at `items`, with cards and key set) begins GPU work, or its cards have been
 * read since it asked. `fresh`: the cards' figures are of now. Sets its phase: see freeze_is_held().
 * Nothing changes for one that is past that.
 */
void freeze_start(const struct freeze_config *config, const struct freeze_card *cards,
		  unsigned card_count, struct freeze_item *const *items, size_t count,
		  struct freeze_item *item, bool fresh, uint64_t now_ns);

/*
 * With fresh figures: notes who has settled, and lets the next one go. Returns it, or NULL; call again
 * until NULL.
 */
struct freeze_item *freeze_next(const struct freeze_config *config, const struct freeze_card *cards,
				unsigned card_count, struct freeze_item *const *items, size_t count,
				uint64_t now_ns);

/* What those that start on the card still lack of their thresholds: it will be taken. */
uint64_t freeze_starting_bytes(const struct freeze_config *config, unsigned card,
			       struct freeze_item *const *items, size_t count);

/* Lets it go whatever the order says: by hand, or because it can't be frozen. */
void freeze_let_go(struct freeze_item *item, uint64_t now_ns);

/* All its GPU work has ended. */
void freeze_end(struct freeze_item *item);
