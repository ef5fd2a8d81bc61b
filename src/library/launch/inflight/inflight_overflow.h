/*
 * The overflow record: one per device. It represents all streams that found no place in the table of records.
 *
 * Each launch into such a stream is marked at once, by its own thread. The marks of different streams end in any
 * order, so the helper queries each one. A device has places for INFLIGHT_OVERFLOW_MARKS marks. While at least half of
 * them are taken, launches wait for marks to end (backpressure). If none ends for 100 ms, the launch goes on. If all
 * places are taken, it reuses another mark's place; then the launches of both count as in flight until the later one
 * ends.
 *
 * Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

#define INFLIGHT_OVERFLOW_MARKS 256 /* per device */

/*
 * Records a mark behind the launch that the calling thread has just made into `stream`. The caller has already
 * added the launch and its `ns` to the device. Returns false if no event could be recorded; then the caller
 * subtracts them again.
 */
bool inflight_overflow_mark(struct inflight_stream *record, CUstream stream, uint64_t ns);

/*
 * Call before a launch: waits while at least half of the device's INFLIGHT_OVERFLOW_MARKS places are taken. The caller holds no
 * lock and has not raised `launching`.
 */
void inflight_overflow_wait(struct inflight_stream *record);

/*
 * Helper thread: removes the marks that were reached, and writes the sums of their launches and predicted time. The caller
 * holds record->lock.
 */
void inflight_overflow_reap(struct inflight_stream *record, uint32_t *ret_launches,
			    uint64_t *ret_ns);

/*
 * Call when a context ends, and its events with it: removes the context's marks, reached or not, and writes the sums of their
 * launches and predicted time.
 */
void inflight_overflow_drop(struct inflight_stream *record, CUcontext context,
			    uint32_t *ret_launches, uint64_t *ret_ns);

/* Call in a forked child, where the events do not exist: forgets all marks. */
void inflight_overflow_reset(void);
