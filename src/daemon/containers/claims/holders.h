/*
 * A table of the claims that hold each slot of each card. A slot is one of the equal parts of a card that the kubelet counts.
 * Lookup takes constant time. Cards are identified by UUID, because a claim's card may be missing. Not thread safe.
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

/* Makes the card's entry, so that holders_add() cannot fail. Returns 0 or -ENOMEM. */
int holders_reserve(struct holders *holders, const char *uuid);
/*
 * Gives the claim those of `slots` that no other claim has. Returns -ENOMEM, and adds nothing, if the card's entry is missing
 * and cannot be made.
 */
int holders_add(struct holders *holders, const char *uuid, const struct slots *slots,
		struct claim *claim);
/* Frees those of `slots` that the claim has. */
void holders_remove(struct holders *holders, const char *uuid, const struct slots *slots,
		    const struct claim *claim);
void holders_clear(struct holders *holders);

/* Returns the claim that has the lowest taken slot of `slots` and, in *ret_slot, that slot. NULL if none is taken. */
struct claim *holders_first(const struct holders *holders, const char *uuid,
			    const struct slots *slots, unsigned *ret_slot);
