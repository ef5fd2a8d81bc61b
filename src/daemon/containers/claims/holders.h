/*
 * Which claim has each slot of each card. Lookup time does not depend on the number of claims.
 * Cards are identified by UUID, because a claim's card may be missing. Single-threaded.
 */
#pragma once

#include "daemon/gpu/nvml/gpu.h"
#include "daemon/state/slots.h"

struct claim;

struct holders_card {
	char uuid[GPU_UUID_TEXT_MAX];
	struct claim *holder[SLOTS_MAX]; /* NULL: the slot is free */
	struct holders_card *next;
};

/* All zero: every slot is free. */
struct holders {
	struct holders_card *first;
};

/* Makes an entry for a card, so that holders_add() cannot fail. Returns 0 or -ENOMEM. */
int holders_reserve(struct holders *holders, const char *uuid);
/*
 * Gives the slots to the claim, except slots that another claim has. Returns -ENOMEM if the card
 * has no entry and none can be made; then adds nothing.
 */
int holders_add(struct holders *holders, const char *uuid, const struct slots *slots,
		struct claim *claim);
/* Frees those of the slots that this claim has. Slots of other claims stay as they are. */
void holders_remove(struct holders *holders, const char *uuid, const struct slots *slots,
		    const struct claim *claim);
void holders_clear(struct holders *holders);

/*
 * Finds the lowest of the slots that a claim has. Returns that claim, and the slot in *ret_slot; NULL if all of the slots are
 * free.
 */
struct claim *holders_first(const struct holders *holders, const char *uuid,
			    const struct slots *slots, unsigned *ret_slot);
