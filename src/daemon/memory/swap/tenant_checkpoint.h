/*
 * Tenants whose memory leaves the card by the driver's checkpoint call (checkpoint.h), because
 * their library cannot move it (swap_way_of()). Only on request: allot pause --swap-out, allot
 * resume.
 *
 * Before the driver is locked, each process's library must confirm that it makes no driver calls of
 * its own (SWAP_ORDER_PARKED). A library thread that blocks in a locked driver could neither end
 * nor find the next daemon.
 *
 * While the tenant is out, it counts for nothing on its card and keeps its quota, but may not
 * allocate, because no memory is reserved for it. It returns when all that it was promised or holds
 * is free, which is reserved before the restore begins. Main thread only.
 */
#pragma once

#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/memory/swap/swap.h"
#include "daemon/state/tenant.h"
#include "daemon/util/json.h"

/*
 * Pauses the tenant and begins to take it off its card. Returns 0 also if it is already off the
 * card, -EBUSY if it is moving, -ESRCH if it has no processes, or another -errno.
 */
int tenant_checkpoint_leave(struct tenant *tenant, struct error *err);
/*
 * Begins to bring the tenant back; afterwards it stays paused or runs. Returns -ENOSPC if there is
 * no room, and the tenant stays off the card. Returns -EBUSY if it is moving.
 */
int tenant_checkpoint_return(struct tenant *tenant, bool paused, struct error *err);
/*
 * The state of an accepted request: 1 while it is carried out, 0 when it has succeeded, -errno when
 * it has failed.
 */
int tenant_checkpoint_outcome(struct tenant *tenant, struct error *err);

/* A checkpoint moves all at once, so the progress stays zero until all has left. */
struct swap_progress tenant_checkpoint_progress(struct tenant *tenant);

/* The tenant was adopted and its state says that it was off the card. Takes it off again. */
void tenant_checkpoint_adopted(struct tenant *tenant);
void tenant_checkpoint_forget(struct tenant *tenant);

/* Where the tenant is. While its libraries still park, it counts as leaving. */
enum checkpoint_place tenant_checkpoint_place(const struct tenant *tenant);
/*
 * Whether the tenant is off its card or moving. Then NVML's figures for its processes are
 * meaningless.
 */
bool tenant_is_checkpointing(const struct tenant *tenant);

/* The tenant's "swap" in the list. null if it is on its card and no request has failed. */
json_t *tenant_checkpoint_to_json(struct tenant *tenant);
