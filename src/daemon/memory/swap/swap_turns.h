/*
 * Takes turns on the cards' memory among tenants whose memory can be moved.
 * policy/memory/swap_schedule.h decides by their slots which tenants are on their cards. A tenant
 * that is not on its card yet gets no lease. A timer runs while there are such tenants. Main thread
 * only.
 */
#pragma once

#include "daemon/state/tenant.h"

/* A tenant was added or changed: decides now and starts the timer. */
void swap_turns_look(struct node *node);

/* The timer's handler. `data` is the node. */
void swap_turns_due(void *data, uint32_t events);

/* The tenant is being removed. */
void swap_turns_forget(struct tenant *tenant);

/* Moves of all present and past tenants. */
struct swap_moves swap_turns_moves(const struct node *node);

void swap_turns_free(struct node *node);
