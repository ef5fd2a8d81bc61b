/*
 * The overflow record: a device's one record for all streams that found no place in the table of records.
 *
 * The launching thread records a mark (an event) behind each launch into such a stream. Marks of different streams are reached
 * in any order, so the helper thread queries each. While at least half of the device's INFLIGHT_OVERFLOW_MARKS places are
 * taken, launches wait for marks to be reached, until no work has ended for 100 ms. If all places are taken, a launch reuses
 * one; both launches then count as in flight until the later launch ends. Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

#define INFLIGHT_OVERFLOW_MARKS 256

/* Marks the launch just made. The caller has counted it and its `ns`, and subtracts both if this fails (no event). */
bool inflight_overflow_mark(struct inflight_stream *record, CUstream stream, uint64_t ns);

/* Call before a launch. The caller holds no lock, and has not incremented `launching`. */
void inflight_overflow_wait(struct inflight_stream *record);

/* Helper thread: removes the marks that were reached, and returns the sums of their counts. The caller holds record->lock. */
void inflight_overflow_reap(struct inflight_stream *record, uint32_t *ret_launches,
			    uint64_t *ret_ns);

/* Call when a context has ended, and its events with it. Removes its marks, and returns the sums of their counts. */
void inflight_overflow_drop(struct inflight_stream *record, CUcontext context,
			    uint32_t *ret_launches, uint64_t *ret_ns);

/* Call in a forked child, where the marks' events do not exist. */
void inflight_overflow_reset(void);
