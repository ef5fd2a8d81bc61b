/*
 * Decides which containers to freeze at the start of their GPU work, and in which order to thaw them. This is Algorithm 2 of
 * Gil et al. (docs/reference/seeds.md), extended to several GPUs and to cases that the paper leaves open.
 *
 *     start ---> ASKING --- room ---------------------------------> STARTING ---> SETTLED
 *       |          |                                                   ^   memory has not changed
 *       |          +-- none -------------------> WAITING --- its turn -+   for settle_ns
 *       +--- room on a GPU, by figures read just now -------------------^
 *
 * - Room: an item is a container with GPU work. It has room if a GPU that it may use has enough free bytes, and no other item
 *   WAITS for that GPU. Enough means the bytes that the item lacks to reach threshold_bytes, plus those that items STARTING
 *   there still lack. A GPU without any work that might end always has room, because no more memory will ever become free
 *   there. (So items that were noticed late, and are frozen while they hold memory, do not wait for each other.) An item that
 *   already holds threshold_bytes is not frozen.
 * - ASKING: the GPUs' figures are too old. The item is frozen until they have been read, a few milliseconds, and then goes
 *   on if there is room.
 * - WAITING items become STARTING one by one, in the order of policy/memory/wait_order.h: the item that used the least GPU time
 *   lately comes first, and no item is overtaken for ever. The next item starts when none is STARTING on a GPU that both may
 *   use. An overdue item that does not fit keeps its GPUs from the items behind it.
 * - SETTLED items are never frozen: they would keep the memory that they hold, and could not use it.
 *
 * The guarantee: no allocation fails for want of memory, as long as no container needs more than threshold_bytes, or pauses for
 * settle_ns before it holds all the memory that it needs. A container that may use several GPUs has this guarantee only if it
 * takes a GPU with room. The paper likewise assumes that any GPU will do.
 *
 * Pure policy on plain data; times are arguments, of one clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/memory/wait_order.h"

#define FREEZE_MAX_CARDS 64
/*
 * An item without memory counts as SETTLED only after FREEZE_EMPTY_SETTLES x settle_ns. An item that holds less than half of
 * the threshold (perhaps a context) counts as SETTLED after FREEZE_SHORT_SETTLES x settle_ns. Otherwise the next item could
 * take the memory of a program that only pauses.
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
	bool is_empty; /* no process other than the items holds memory on the GPU */
};

/* A container with GPU work. */
struct freeze_item {
	enum freeze_phase phase; /* changed only by the functions below */
	/* frozen by a user: this policy does not thaw the item, and other items do not wait for it */
	bool by_hand;
	uint64_t cards;       /* bit i: the item may use card i */
	struct order_key key; /* the item's place in the order while it waits */
	uint64_t held_bytes;  /* memory held on all GPUs: freeze_note_memory() */
	uint64_t changed_ns; /* when held_bytes changed, or when the item became STARTING if later */
};

/* True if this policy wants the item frozen. */
bool freeze_is_held(const struct freeze_item *item);

void freeze_note_memory(struct freeze_item *item, uint64_t held_bytes, uint64_t now_ns);

/*
 * Call when `item`, one of `items` with `cards` and `key` set, begins GPU work. If its phase is ASKING afterwards, read its
 * GPUs' figures anew, and call again with `fresh` true. Sets the phase of `item`, unless the phase is past ASKING.
 * freeze_is_held() then tells whether to freeze the item.
 */
void freeze_start(const struct freeze_config *config, const struct freeze_card *cards,
		  unsigned card_count, struct freeze_item *const *items, size_t count,
		  struct freeze_item *item, bool fresh, uint64_t now_ns);

/*
 * First makes items SETTLED whose memory has not changed for long enough. Then lets the next waiting item go and returns it;
 * NULL: none may go. Call with fresh figures, repeatedly until it returns NULL.
 */
struct freeze_item *freeze_next(const struct freeze_config *config, const struct freeze_card *cards,
				unsigned card_count, struct freeze_item *const *items, size_t count,
				uint64_t now_ns);

/* The bytes that the items STARTING on the GPU may still take until each holds threshold_bytes. */
uint64_t freeze_starting_bytes(const struct freeze_config *config, unsigned card,
			       struct freeze_item *const *items, size_t count);

/* Lets the item go before its turn: a user asked for that, or the item cannot be frozen. */
void freeze_resume(struct freeze_item *item, uint64_t now_ns);

/* Call when all GPU work of the item has ended. */
void freeze_end(struct freeze_item *item);
