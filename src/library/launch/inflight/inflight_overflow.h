/*
 * The overflow record: a device's one record for all streams that found no place in the table of records.
 *
 * The launching thread records a mark (an event) behind each launch into such a stream. Marks of different streams are reached
 * in any order, so the helper thread queries each. While at least half of the device's INFLIGHT_OVERFLOW_MARKS places are
 * taken, launches wait for marks to be reached, until no work has ended for 100 ms. If all places are taken, a launch reuses
 * one; both launches then count as in flight until the later launch ends.
 *
 * Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

#define INFLIGHT_OVERFLOW_MARKS 256

/*
 * Records a mark behind the launch just made into `stream`. The caller has added the launch and its `ns` to the device. Returns
 * false if no event could be recorded; then the caller subtracts them again.
 */
bool inflight_overflow_mark(struct inflight_stream *record, CUstream stream, uint64_t ns);

/*
 * Call before a launch: waits while at least half of the device's places are taken. The caller holds no lock, and has not
 * incremented `launching`.
 */
void inflight_overflow_wait(struct inflight_stream *record);

/*
 * Helper thread: removes the marks that were reached, and returns the sums of their launches and predicted time. The caller
 * holds record->lock.
 */
void inflight_overflow_reap(struct inflight_stream *record, uint32_t *ret_launches,
			    uint64_t *ret_ns);

/*
 * Call when a context ends, and its events with it: removes all marks of that context, and returns the sums of their launches
 * and predicted time.
 */
void inflight_overflow_drop(struct inflight_stream *record, CUcontext context,
			    uint32_t *ret_launches, uint64_t *ret_ns);

/* Call in a forked child: forgets all marks, whose events do not exist there. */
void inflight_overflow_reset(void);
