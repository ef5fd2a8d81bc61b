/*
 * A checkpoint moves all of a tenant's memory off its cards by the driver's calls (checkpoint.h). It is for tenants whose
 * library cannot move the memory (swap_way_of()), and happens only on request: allot pause --swap-out, allot resume.
 *
 * Before the processes are locked (driver_checkpoint.h), the library of each parks: it confirms that it makes no driver calls
 * of its own (SWAP_ORDER_PARKED). A library thread that blocks in a locked driver could neither end nor find the next daemon.
 *
 * While the tenant is out, it counts for nothing on its card and keeps its quota. It may not allocate, because no memory is
 * reserved for it. It can return only when as much memory is free as it was promised or holds; that much is reserved before
 * the restore begins. Main thread only.
 */
#pragma once

#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/state/tenant.h"
#include "daemon/util/json.h"

/*
 * Pauses the tenant and begins to take it off its card. Returns 0 also if the tenant is off already; -EBUSY if it is moving;
 * -ESRCH if it has no processes; or another -errno.
 */
int tenant_checkpoint_leave(struct tenant *tenant, struct error *err);
/* Begins to bring the tenant back; with `paused`, it stays paused. Returns -ENOSPC without room, -EBUSY if it is moving. */
int tenant_checkpoint_return(struct tenant *tenant, bool paused, struct error *err);
/* Returns the state of the last accepted request: 1 in progress, 0 succeeded, -errno failed. */
int tenant_checkpoint_outcome(struct tenant *tenant, struct error *err);

/* Returns the progress of leaving: zero until all memory has left, since a checkpoint reports nothing in between. */
struct swap_progress tenant_checkpoint_progress(struct tenant *tenant);

/* Call for an adopted tenant: takes it off its card if it was off under the previous daemon and has come back since. */
void tenant_checkpoint_adopted(struct tenant *tenant);
void tenant_checkpoint_forget(struct tenant *tenant);

/* Returns where the tenant's memory is. While libraries park, it counts as leaving. */
enum checkpoint_place tenant_checkpoint_place(const struct tenant *tenant);
/* Returns true if the tenant is off its card or moving: NVML's figures for its processes then mean nothing. */
bool tenant_is_checkpointing(const struct tenant *tenant);

/* Makes the member "swap" of the tenant in the reply to `list`; null if the tenant is on its card and no request failed. */
json_t *tenant_checkpoint_to_json(struct tenant *tenant);
