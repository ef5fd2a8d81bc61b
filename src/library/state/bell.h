/*
 * The tenant's bell: wakes the daemon where a look would otherwise be late. Rung
 *
 *   when the process joins            so that the daemon knows of the bell
 *   when work or demand begins        after BELL_REST_NS without: before, the daemon still looks
 *   when work ends without a GO       the lease is waited for
 *   when a lease was idle_ns idle     it can be had by another
 *   when memory was measured          a census is due (measured.h)
 *
 * never by a launch in free run, nor more often than work comes and goes. A daemon that is gone, or
 * hears nothing, does no harm: it looks without being rung for as well.
 *
 * Thread safe; 1 us and less.
 */
#pragma once

#include "library/state/process_state.h"
#include "library/sys/sys.h"

#define BELL_REST_NS (20 * NS_PER_MS)

static inline void bell_ring(int index)
{
	struct region_bell *bell = &atomic_load(&process_state.report)->bell[index];

	atomic_fetch_add(&bell->rung, 1);
	sys_futex_wake_shared(&bell->rung, 1);
}
