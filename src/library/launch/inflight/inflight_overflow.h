/*
 * The overflow record: one per device, it stands for all streams for which the table of records has no place.
 *
 * Each launch into such a stream is marked at once, by its own thread. The marks of different streams end in
 * any order, so they form a set, and the helper queries each one. The set is bounded: while it is half full, launches
 * wait for marks to end (backpressure). If none ends for 100 ms, a launch goes on, and in a full set it takes over
 * another mark's place: the sum then counts as in flight until the later launch ends.
 *
 * Thread safe. Where a comment says that a lock is held, the caller holds it.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

#define INFLIGHT_OVERFLOW_MARKS 256 /* per device */

/*
 * Records a mark behind the launch that the calling thread has just made into `stream`. The caller has counted
 * the launch and its `ns` into the device. False: no event could be recorded, so the caller takes the count back.
 */
bool inflight_overflow_mark(struct inflight_stream *record, CUstream stream, uint64_t ns);

/* Before a launch: waits while the set is half full. The caller holds no lock, and does not show `launching`. */
void inflight_overflow_wait(struct inflight_stream *record);

/*
 * Helper thread: takes off the marks that were reached. Writes their launches and predicted time.
 * Holds record->lock.
 */
void inflight_overflow_reap(struct inflight_stream *record, uint32_t *ret_launches,
			    uint64_t *ret_ns);

/* The context goes, and its events: takes off its marks, reached or not, and says what they stood for. */
void inflight_overflow_drop(struct inflight_stream *record, CUcontext context,
			    uint32_t *ret_launches, uint64_t *ret_ns);

/* In a forked child, which has no events. */
void inflight_overflow_reset(void);
