/* Arithmetic of swap_schedule.h: which tenant holds how much, and which must leave to make room for another. Internal. */
#pragma once

#include "policy/memory/swap_schedule.h"

struct room {
	uint64_t bytes[SWAP_SCHEDULE_CARDS];
};

bool swap_schedule_is_on_card(const struct swap_schedule_tenant *t);
/* Ordered to return, and not on its GPUs yet: room is reserved for it. False if it found too little (is_short). */
bool swap_schedule_is_awaited(const struct swap_schedule_tenant *t);

/* Summed over the tenant's GPUs. */
uint64_t swap_schedule_movable_bytes(const struct swap_schedule_tenant *t);
/*
 * True if the tenant lacks bytes on a GPU, or is swapped out and has work or is_recalled. So a swapped-out tenant may be in
 * need even with no bytes to move back. False for a tenant that a user ordered out.
 */
bool swap_schedule_is_in_need(const struct swap_schedule_tenant *t);

uint64_t swap_schedule_move_ns(const struct swap_schedule *r, uint64_t bytes);
/* How long a tenant must stay so that its moves take only move_part of the time. */
uint64_t swap_schedule_stay_ns(const struct swap_schedule *r, uint64_t moved_bytes);

/* Bytes on the GPU or reserved there. */
uint64_t room_taken_bytes(const struct swap_schedule *r, unsigned card);
/* Bytes of each GPU that are neither taken, reserved nor granted. */
void room_free(const struct swap_schedule *r, struct room *ret);
/* True if the bytes in `room` suffice for the bytes that `t` lacks. */
bool room_fits(const struct room *room, const struct swap_schedule_tenant *t);

/*
 * True if there would be room for the tenant once all other tenants left, even those that ignored an order to leave: for the
 * bytes that it lacks or, if is_return, for all that it must move back.
 */
bool room_can_ever(const struct swap_schedule *r, int tenant, bool is_return);

/*
 * Makes enough room for `tenant` by ordering other tenants to leave, or orders none if that is impossible. Does nothing while a
 * tenant is already leaving a GPU where `tenant` lacks bytes.
 */
void room_make(struct swap_schedule *r, int tenant, uint64_t now_ns);
