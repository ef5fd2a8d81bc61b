/*
 * Tenants whose memory can be moved off the GPU (on_full "swap") take turns on the GPUs' memory. policy/memory/swap_schedule.h
 * decides, from what their processes report, which tenants are on their GPUs. A tenant whose memory is off may not use the GPU.
 * A timer runs while there are tenants with on_full "swap". Main thread only.
 */
#pragma once

#include "daemon/state/tenant.h"

/* Decides at once which tenants are on their GPUs, and starts the timer. Call when a tenant was added or changed. */
void swap_turns_update(struct node *node);

/* Handler of node->swap_timer; `data` is the node. */
void swap_turns_due(void *data, uint32_t events);

/* Call when the tenant is being removed. */
void swap_turns_remove(struct tenant *tenant);

/* How often memory of all present and past tenants was moved. */
struct swap_moves swap_turns_moves(const struct node *node);

void swap_turns_free(struct node *node);
