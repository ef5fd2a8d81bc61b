/* Which tenant holds what on the cards, and which leaves for which: the arithmetic behind swap_schedule.h. Internal. */
#pragma once

#include "policy/memory/swap_schedule.h"

/* Bytes on each card. */
struct room {
	uint64_t bytes[SWAP_SCHEDULE_CARDS];
};

bool swap_schedule_is_on_card(const struct swap_schedule_tenant *t);
/* Whether bytes are reserved for the tenant's return, and it is not on the card yet. */
bool swap_schedule_is_awaited(const struct swap_schedule_tenant *t);

/* Returns the tenant's movable bytes on all its cards together. */
uint64_t swap_schedule_movable_bytes(const struct swap_schedule_tenant *t);
/*
 * Whether the tenant lacks bytes, or needs to be let in. A tenant that is out may have nothing to move back, and then needs no
 * bytes.
 */
bool swap_schedule_is_in_need(const struct swap_schedule_tenant *t);

/* Returns how long it takes to move that many bytes. */
uint64_t swap_schedule_move_ns(const struct swap_schedule *r, uint64_t bytes);
/* Returns how long a stay must be so that moving that many bytes takes move_part of the time. */
uint64_t swap_schedule_stay_ns(const struct swap_schedule *r, uint64_t moved_bytes);

/* Returns the bytes that are on the card, or reserved there. */
uint64_t room_taken_bytes(const struct swap_schedule *r, unsigned card);
/* Writes the bytes of each card that are neither taken nor reserved nor granted. */
void room_free(const struct swap_schedule *r, struct room *ret);
/* Whether the room has what t lacks. */
bool room_fits(const struct room *room, const struct swap_schedule_tenant *t);

/*
 * Whether there could be room if all others left that can. The room is for what the tenant lacks or, if is_return, for all that
 * it must move back.
 */
bool room_can_ever(const struct swap_schedule *r, int tenant, bool is_return);

/*
 * Orders as many tenants to leave as it takes for what the tenant lacks, or none. Does nothing while a tenant is already
 * leaving a card that is short.
 */
void room_make(struct swap_schedule *r, int tenant, uint64_t now_ns);
