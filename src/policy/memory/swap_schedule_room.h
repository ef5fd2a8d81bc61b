/*
 * Who holds what of the cards, and who leaves them for whom: the arithmetic under swap_schedule.h. Internal to it.
 */
#pragma once

#include "policy/memory/swap_schedule.h"

/* Bytes of each card. */
struct room {
	uint64_t bytes[SWAP_SCHEDULE_CARDS];
};

bool swap_schedule_is_on_card(const struct swap_schedule_tenant *t);
/* Its bytes are reserved, and not there yet. */
bool swap_schedule_is_awaited(const struct swap_schedule_tenant *t);

/* Of all its cards. */
uint64_t swap_schedule_movable_bytes(const struct swap_schedule_tenant *t);
/* It lacks bytes, or to be let in: one that is out with nothing to move back needs none. */
bool swap_schedule_is_in_need(const struct swap_schedule_tenant *t);

/* How long it takes to move so much. */
uint64_t swap_schedule_move_ns(const struct swap_schedule *r, uint64_t bytes);
/* So long that moving so much is a small part of the time. */
uint64_t swap_schedule_stay_ns(const struct swap_schedule *r, uint64_t moved_bytes);

/* What is on the card or reserved there. */
uint64_t room_taken_bytes(const struct swap_schedule *r, unsigned card);
/* Neither taken nor reserved nor granted. */
void room_free(const struct swap_schedule *r, struct room *ret);
/* What t lacks is in it. */
bool room_fits(const struct room *room, const struct swap_schedule_tenant *t);

/* Could there be room for what it lacks, or (is_return) for what it is to return, if all others left that can? */
bool room_can_ever(const struct swap_schedule *r, int tenant, bool is_return);

/* Sends as many away as it takes for what the tenant lacks, or nobody. Not while somebody leaves there already. */
void room_make(struct swap_schedule *r, int tenant, uint64_t now_ns);
