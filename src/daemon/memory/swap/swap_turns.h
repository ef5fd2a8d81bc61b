/*
 * Turns on the cards' memory: of the tenants whose memory can be moved, who is on his cards, as
 * policy/memory/swap_schedule.h decides by what their slots say. Who is not, or not yet, has no lease. Main thread
 * only, by a timer that runs while there are such tenants.
 */
#pragma once

#include "daemon/state/tenant.h"

/* A tenant came, or what it is changed: looks now, and from here on again and again. */
void swap_turns_look(struct node *node);

/* The timer's handler; data: the node. */
void swap_turns_due(void *data, uint32_t events);

/* The tenant goes. */
void swap_turns_forget(struct tenant *tenant);

/* Of all tenants that there ever were. */
struct swap_moves swap_turns_moves(const struct node *node);

void swap_turns_free(struct node *node);
