/*
 * The gate: every unit of GPU work passes it on the way to the driver, and may have to wait there.
 *
 *     gate_enter(&pass, &work);  result = real call;  gate_leave(&pass, &work, result);
 *
 * Memory order: under leases a thread first raises `launching` in its slot and then reads the lease word; the daemon first
 * writes CLOSING and then reads `launching`. So the daemon misses no launch. Free run leaves that out, as it would be half
 * of the gate's cost: a launch that slips past the end of free run shows as `busy`, and the arbiter lets it drain.
 *
 * Waits, and what ends them:
 *   for the lease (STOP, CLOSING)   the daemon hands it on; this needs no progress of any tenant. If the daemon is gone the
 *                                   wait ends at once, and only the tenant's own cap holds.
 *   for its turn (GO, policy/lease/turns.h)  the same: it ends when the process with the turn is idle, or by time
 *   for a grant (PACED, pace.h)     the daemon makes one each period, whatever the tenant owes; without a daemon as above
 *   for in-flight work (depth)      4 x its predicted length, 10 to 100 ms. Then this call and the later ones pass, until
 *                                   some work is seen to end. Time in which the process was stopped does not count.
 * So a stream that waits for its own thread, a host function that needs a lock held here, and ranks that spin for each other
 * can be slowed, never hung.
 *
 * Thread safe. A process without a tenant pays one load.
 */
#pragma once

#include "library/launch/inflight/inflight.h"
#include "library/launch/inflight/work.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"

struct gate_pass {
	struct region_slot_device *device; /* NULL: not gated */
	struct inflight_stream *stream;    /* NULL: nothing is left in flight, or no record */
	int index;
	bool is_leased; /* predicted and sampled, and ... */
	bool pays;      /* in tokens, when its length is known: pace.h ... */
	bool is_paced;  /* ... and runs beside others' work */
	bool is_refused; /* the call may not be made: CUDA_ERROR_OUT_OF_MEMORY. Its end is as always */
	bool is_raised; /* ... launching is raised: also for a call that returns when the work is done */
	uint32_t detours; /* DETOUR_HOLD: inside the hold, swap_hold.h; DETOUR_TRACE: recorded */
	uint64_t trace_begin; /* of a call that is recorded: ticks */
	struct inflight_pass inflight;
};

void gate_enter_active(struct gate_pass *pass, const struct work *work);
void gate_leave_active(struct gate_pass *pass, const struct work *work, CUresult result);

static inline void gate_enter(struct gate_pass *pass, const struct work *work)
{
	pass->device = NULL;
	pass->is_refused = false;
	if (likely(process_is_active()))
		gate_enter_active(pass, work);
}

static inline void gate_leave(struct gate_pass *pass, const struct work *work, CUresult result)
{
	if (likely(pass->device != NULL))
		gate_leave_active(pass, work, result);
}
