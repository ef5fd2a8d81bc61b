#include "library/launch/fast_path_pass.h"

#include "library/launch/trace_launch.h"
#include "library/loader/real.h"
#include "library/sys/locks.h"
#include "library/trace/trace_record.h"

/* A trace needs the gate only if its clock is not the processor's counter (trace_launch.h). */
static bool must_take_gate(void)
{
	uint32_t detours = atomic_load(&process_state.detours);

	return detours & ~(uint32_t)DETOUR_TRACE ||
	       (detours && atomic_load(&trace_sink.clock) != TRACE_COUNTER);
}

/* The conditions of fast_path.h, except the lease, which each launch checks. */
static bool conditions_hold(int device)
{
	const struct inflight_device *f = &inflight_devices[device];

	return process_is_active() && !must_take_gate() && !atomic_load(&process_state.captures) &&
	       atomic_load(&f->shows_busy) &&
	       atomic_load(&f->inflight_ns) <
		       (int64_t)process_free_depth_ns(process_control_device(device));
}

#define COPY_SLOT(symbol, streams, params, args, ...) \
	__atomic_store_n(&fast_path.real.symbol, \
			 !is_traced || !real.symbol ? real.symbol : trace_launch.symbol, \
			 __ATOMIC_RELAXED);

void fast_path_try_open(int device)
{
	uint32_t bit = 1U << device;

	if ((atomic_load_explicit(&fast_path.open, memory_order_relaxed) & bit) ||
	    !atomic_load_explicit(&fast_path.is_prepared, memory_order_relaxed) ||
	    !conditions_hold(device))
		return;
	WITH_LOCK(&locks.fast_path);
	if (!conditions_hold(device))
		return;
	bool is_traced = trace_is_on();
	atomic_store_explicit(&fast_path.control,
			      atomic_load_explicit(&process_state.control, memory_order_acquire),
			      memory_order_relaxed);
	DRIVER_TABLE_LAUNCH(COPY_SLOT)
	atomic_fetch_or_explicit(&fast_path.open, bit, memory_order_release);
}
