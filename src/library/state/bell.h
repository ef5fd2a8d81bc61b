/*
 * The tenant's doorbell: a ring wakes the daemon when its next poll would come late. The library rings
 *
 *   when the process joins                     so that the daemon learns of the doorbell
 *   when work begins                           if there was none for BELL_REST_NS; until then the daemon polls often
 *   when a launch must wait under STOP         the daemon should give this tenant the lease
 *   when work ends under CLOSING or STOP       the daemon can give the lease to another tenant
 *   when no work ran for idle_ns under GO      the daemon can give the lease to another tenant
 *   when memory was measured                   the daemon should query NVML (measured.h)
 *   when a thread asks for memory              the daemon should answer (reserve_wait.h)
 *   at a sync point, if the daemon wants that  the daemon can end the turn there (sync_point.h)
 *   when work begins on an idle device         if the daemon wants that (SYNC_POINT_ENDS_USE)
 *
 * Under LEASE_FREE, a launch on a busy device never rings. So rings are no more frequent than beginnings and ends of work. A
 * lost ring does no harm, because the daemon also polls. Thread safe; takes 1 us or less.
 */
#pragma once

#include "library/state/process_state.h"
#include "library/sys/sys.h"

#define BELL_REST_NS (20 * NS_PER_MS)

static inline void bell_ring(int index)
{
	struct region_bell *bell = &atomic_load(&process_state.report)->bell[index];

	atomic_fetch_add(&bell->ring_count, 1);
	sys_futex_wake_shared(&bell->ring_count, 1);
}
