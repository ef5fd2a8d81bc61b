/*
 * The gate: every unit of GPU work passes through it on the way to the driver, and may have to wait there.
 *
 *     gate_enter(&pass, &work);  result = real call;  gate_leave(&pass, &work, result);
 *
 * Memory order: under leases a thread first raises `launching` in its slot and then reads the lease word; the daemon first
 * writes CLOSING and then reads `launching`. So the daemon misses no launch. Free run skips this, since it would be half of
 * the gate's cost. A launch that passes just after the end of free run shows as `busy`, and the arbiter lets it drain.
 *
 * What a launch may wait for, and what ends the wait:
 *   the lease (STOP, CLOSING)       The daemon hands the lease on, which needs no progress of any tenant. If the daemon is
 *                                   gone, the wait ends at once, and only the tenant's own cap applies.
 *   the process's turn (GO, policy/lease/turns.h)   As for the lease. A turn ends when the process that has it is idle, or
 *                                   after some time.
 *   a grant (PACED, pace.h)         The daemon grants in each period, however much the tenant owes. Without a daemon, as for
 *                                   the lease.
 *   in-flight work (depth)          The wait lasts at most 4 times the predicted length of the work, but 10 to 100 ms. Then
 *                                   this call and later ones pass until some work is seen to end. Time in which the process
 *                                   was stopped does not count.
 * So a stream that waits for its own thread, a host function that needs a lock held here, and ranks that spin for each other
 * can be slowed, but never hang.
 *
 * Thread safe. A process without a tenant pays for one load.
 */
#pragma once

#include "library/launch/inflight/inflight.h"
#include "library/launch/inflight/work.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"

struct gate_pass {
	struct region_slot_device *device; /* NULL if the work is not gated */
	/* NULL if nothing stays in flight, or the stream has no record */
	struct inflight_stream *stream;
	int index;
	bool is_leased; /* the work is predicted and sampled */
	bool pays;      /* pays tokens once its length is known: pace.h */
	bool is_paced;  /* runs at the same time as other tenants' work */
	/* The driver call must not be made: return CUDA_ERROR_OUT_OF_MEMORY, but call gate_leave() as always. */
	bool is_refused;
	/* `launching` was raised: under a lease, and for a call that returns only when its work is done */
	bool is_raised;
	/* DETOUR_HOLD if inside the hold (swap_hold.h), DETOUR_TRACE if the work is recorded */
	uint32_t detours;
	uint64_t trace_begin; /* when a recorded call began, in ticks */
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
