/*
 * Which claim has each slot of each card: found at once, however many claims there are. Cards are known by their
 * UUIDs, as those of a claim need not be there. One thread.
 */
#pragma once

#include "daemon/gpu/nvml/gpu.h"
#include "daemon/state/slots.h"

struct claim;

struct holders_card {
	char uuid[GPU_UUID_TEXT_MAX];
	struct claim *holder[SLOTS_MAX]; /* NULL: nobody has it */
	struct holders_card *next;
};

/* All zeros: nobody has anything. */
struct holders {
	struct holders_card *first;
};

/* Makes room for a card, so that holders_add() does not fail. -ENOMEM. */
int holders_reserve(struct holders *holders, const char *uuid);
/* A slot that another claim has stays that claim's. -ENOMEM: the card has no room yet; then nothing is added. */
int holders_add(struct holders *holders, const char *uuid, const struct slots *slots,
		struct claim *claim);
/* Those of the slots that are the claim's. */
void holders_remove(struct holders *holders, const char *uuid, const struct slots *slots,
		    const struct claim *claim);
void holders_clear(struct holders *holders);

/* Who has the lowest of the slots that anyone has, and which that is; NULL: nobody has any of them. */
struct claim *holders_first(const struct holders *holders, const char *uuid,
			    const struct slots *slots, unsigned *ret_slot);
