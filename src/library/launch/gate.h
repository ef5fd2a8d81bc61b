/*
 * The gate: every unit of GPU work passes here on its way to the driver, and may have to wait. The lease states (STOP, GO, ...)
 * are enum lease_state in abi/shm/region.h; "free run" is LEASE_FREE.
 *
 *     gate_enter(&pass, &work);  result = real call;  gate_leave(&pass, &work, result);
 *
 * Memory order: under a lease, a thread first increments `launching` in its slot and then reads the lease word; the daemon
 * first writes LEASE_CLOSING and then reads `launching`. So the daemon misses no launch. In free run a thread only reads the
 * lease word, because incrementing `launching` would be half of the gate's cost. A launch that passes just after the end of
 * free run sets `busy` in the slot, and the daemon waits until that work has ended.
 *
 * A launch may wait for each of the following, and the right column says how the wait ends:
 *
 *   the lease (STOP, CLOSING)   The daemon gives each lease to the next tenant, whether or not tenants make progress. If the
 *                               daemon is gone, the wait ends at once, and only the tenant's cap on GPU time still applies.
 *   the process's turn (GO)     A turn ends when its process is idle, or after some time (policy/lease/turns.h). If the daemon
 *                               is gone, the wait ends at once.
 *   tokens (PACED, pace.h)      The daemon grants tokens in each period, even to a tenant that owes some. If the daemon is
 *                               gone, the wait ends at once.
 *   in-flight work              The wait lasts at most 4 times the predicted length of the work, but at least 10 ms and at
 *                               most 100 ms. Time for which the process was stopped does not count. Then calls pass without
 *                               this wait until some work ends, while less than STALL_DEPTH_NS (gate.c) is in flight.
 *
 * So none of these hangs, though the gate may slow it: a stream that waits for the thread that launches into it, a host
 * function that needs a lock of a thread that waits at the gate, and ranks of a collective that wait for each other.
 *
 * Thread safe. In a process without a tenant, the gate costs one load.
 */
#pragma once

#include "library/launch/inflight/inflight.h"
#include "library/launch/inflight/work.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"

struct gate_pass {
	struct region_slot_device *device; /* NULL if the work is not gated */
	/* The record of the work's stream. NULL if the stream has none, or the work is done when the call returns. */
	struct inflight_stream *stream;
	int index;
	bool is_leased; /* the work's length is predicted, and sometimes measured */
	bool pays;      /* the tenant pays tokens for the work, by its length (pace.h) */
	bool is_paced;  /* the work passed under LEASE_PACED: other tenants' work may run too */
	/* Do not call the driver: return CUDA_ERROR_OUT_OF_MEMORY, and call gate_leave() as always. */
	bool is_refused;
	bool is_counted_launching;
	/* DETOUR_HOLD: swap keeps the memory on the GPU (swap_hold.h). DETOUR_TRACE: the work is recorded. */
	uint32_t detours;
	uint64_t trace_begin; /* ticks */
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
