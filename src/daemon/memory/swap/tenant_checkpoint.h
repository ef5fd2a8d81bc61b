/*
 * A checkpoint moves all of a tenant's memory off its GPUs by the driver's calls (checkpoint.h). It is for tenants whose
 * library cannot move the memory (swap_way_of()), and happens only on request: allot pause --swap-out, allot resume.
 *
 * Before the processes are locked (driver_checkpoint.h), the library of each parks: it confirms that it makes no driver calls
 * of its own (SWAP_ORDER_PARKED). A library thread that blocks in a locked driver could neither end nor find the next daemon.
 *
 * While the tenant is out, it counts for nothing on its GPU and keeps its quota. It may not allocate, because no memory is
 * reserved for it. It can return only when as much memory is free as it was promised or holds, which is reserved before the
 * restore begins. Main thread only.
 */
#pragma once

#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/state/tenant.h"
#include "daemon/util/json.h"

/* Begins to take the tenant off its GPU. 0 also if it is off already; -EBUSY while it moves; -ESRCH without processes. */
int tenant_checkpoint_leave(struct tenant *tenant, struct error *err);
/* Begins to bring the tenant back; with `paused`, it stays paused. Returns -ENOSPC without room, -EBUSY if it is moving. */
int tenant_checkpoint_return(struct tenant *tenant, bool paused, struct error *err);
/* The state of the last accepted request: 1 in progress, 0 succeeded, -errno failed. */
int tenant_checkpoint_outcome(struct tenant *tenant, struct error *err);

/* The progress of leaving: zero until all memory has left, since a checkpoint reports nothing in between. */
struct swap_progress tenant_checkpoint_progress(struct tenant *tenant);

/* Takes an adopted tenant off its GPU if it was off under the previous daemon and has come back since. */
void tenant_checkpoint_adopted(struct tenant *tenant);
void tenant_checkpoint_forget(struct tenant *tenant);

/* While libraries park, the tenant counts as leaving. */
enum checkpoint_place tenant_checkpoint_place(const struct tenant *tenant);
/* The tenant is off its GPU or moving, so NVML's figures for its processes mean nothing. */
bool tenant_is_checkpointing(const struct tenant *tenant);

/* The tenant's member "swap" in the reply to `list`; null if it is on its GPU and no request failed. */
json_t *tenant_checkpoint_to_json(struct tenant *tenant);
