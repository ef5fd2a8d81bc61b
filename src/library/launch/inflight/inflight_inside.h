/*
 * Marks and counts, shared by the launching thread's side (inflight.c) and the helper's (inflight_poll.c). inflight.h defines
 * the nouns. Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/*
 * Adds to what the stream's device has in flight, or subtracts if negative. Shuts the fast path if the sum reaches
 * free_depth_ns.
 */
void inflight_count_into_device(struct inflight_stream *stream, int32_t launches, int64_t ns);

/*
 * Records a mark behind all unmarked launches. `sample` is the timed pair that the mark ends, or
 * INFLIGHT_NO_SAMPLE. The caller holds stream->lock.
 */
void inflight_push_mark(struct inflight_stream *stream, int sample);

/* Call in a forked child: forgets the parent's state in inflight_poll.c. */
void inflight_poll_reset(void);
