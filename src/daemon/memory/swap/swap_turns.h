/*
 * Lets tenants whose memory can be moved take turns on the cards' memory.
 * policy/memory/swap_schedule.h decides which tenants are on their cards, by what their slots
 * report. A tenant that is not on its card yet gets no lease. A timer runs while there are tenants
 * with movable memory. Main thread only.
 */
#pragma once

#include "daemon/state/tenant.h"

/*
 * Call when a tenant was added or changed. Decides at once which tenants are to be on their cards,
 * and starts the timer.
 */
void swap_turns_look(struct node *node);

/* Handler of node->swap_timer: reads the slots and decides again. `data` is the node. */
void swap_turns_due(void *data, uint32_t events);

/* Call when the tenant is being removed. */
void swap_turns_forget(struct tenant *tenant);

/* Returns how often memory of all present and past tenants was moved. */
struct swap_moves swap_turns_moves(const struct node *node);

void swap_turns_free(struct node *node);
