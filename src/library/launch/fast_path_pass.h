#pragma once

#include "library/launch/inflight/inflight.h"
#include "library/loader/fast_path.h"
#include "library/state/process_state.h"

/* Call after the gate let a launch pass. Opens the device's fast path if the conditions of fast_path.h are true. */
void fast_path_try_open(int device);

/* If a launch may skip gate_enter(), returns the stream's record; then call fast_path_leave(). Otherwise NULL. */
static inline struct inflight_stream *fast_path_pass(CUstream stream)
{
	uintptr_t key = inflight_fast_path_key(stream);
	struct inflight_stream *s = inflight_fast_path_place(key);

	/* Keeps the compiler from computing each field's address anew from the hash. */
	__asm__("" : "+r"(s));
	if (unlikely(atomic_load_explicit(&s->fast_path_key, memory_order_relaxed) != key))
		return NULL;
	/* An unused record has key 0, as NULL has. But it has no device bits, so such a launch does not pass. */
	if (unlikely(!(atomic_load_explicit(&fast_path.open, memory_order_acquire) &
		       atomic_load_explicit(&s->fast_path_device, memory_order_relaxed))))
		return NULL;
	const struct region_control *control = atomic_load_explicit(&fast_path.control,
								    memory_order_relaxed);
	const _Atomic uint32_t *lease = (const void *)((const char *)control + s->lease_at);
	return likely(lease_state_of(atomic_load(lease)) == LEASE_FREE) ? s : NULL;
}

/* The rest of fast_path_leave(): records a mark if mark_every launches have none (inflight.h), and opens the fast path. */
CUresult fast_path_leave_slowly(struct inflight_stream *s);

/* Call after the driver's call. Counts the launch, and returns `result`. */
static inline CUresult fast_path_leave(struct inflight_stream *s, CUresult result)
{
	if (unlikely(result != CUDA_SUCCESS))
		return result;
	/* The helper thread may have found nothing in flight meanwhile, and closed the fast path. */
	if (unlikely(inflight_count(s) ||
		     !(atomic_load_explicit(&fast_path.open, memory_order_relaxed) &
		       atomic_load_explicit(&s->fast_path_device, memory_order_relaxed))))
		return fast_path_leave_slowly(s);
	return CUDA_SUCCESS;
}
