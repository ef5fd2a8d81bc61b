/*
 * Tenants whose memory leaves the card by the driver's checkpoint call (checkpoint.h): those whose library
 * can't move it (swap_way_of()). By request alone: allot pause --swap-out, allot resume.
 *
 * Before the driver is locked under its processes, their libraries are told and say that they make no calls
 * of their own (SWAP_ORDER_PARKED): a helper thread that waits in a locked driver could neither end nor
 * find the next daemon. While it is out the tenant counts nothing of its card, and holds its quota as before;
 * but it may take no more, since nothing is kept for it there. It comes back when all that it is promised or
 * holds is there to be had, which is reserved before the restore begins. Main thread only.
 */
#pragma once

#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/memory/swap/swap.h"
#include "daemon/state/tenant.h"
#include "daemon/util/json.h"

/*
 * Begins to take it off its card; it is paused from here on. -EBUSY: it moves already; -ESRCH: it has no
 * processes; -errno. Already out: 0.
 */
int tenant_checkpoint_leave(struct tenant *tenant, struct error *err);
/*
 * Begins to bring it back, to stay paused or to go on when it is there. -ENOSPC: there is no room, and it
 * stays out; -EBUSY.
 */
int tenant_checkpoint_return(struct tenant *tenant, bool paused, struct error *err);
/* Of a request that was accepted: 1 while it is carried out, 0 when it was, -errno when it failed. */
int tenant_checkpoint_outcome(struct tenant *tenant, struct error *err);

/* All at once: nothing has left before all has. */
struct swap_progress tenant_checkpoint_progress(struct tenant *tenant);

/* It is adopted, and its state says that it was out: it leaves again. */
void tenant_checkpoint_adopted(struct tenant *tenant);
void tenant_checkpoint_forget(struct tenant *tenant);

/* A tenant that its library still parks is leaving. */
enum checkpoint_place tenant_checkpoint_place(const struct tenant *tenant);
/* It is out or on its way: what NVML says of its processes means nothing. */
bool tenant_is_checkpointing(const struct tenant *tenant);

/* The tenant's "swap" in the list; null when it is in and never failed. */
json_t *tenant_checkpoint_to_json(struct tenant *tenant);
