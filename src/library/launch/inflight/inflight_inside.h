/*
 * Marks and counts, shared by the launching thread's side (inflight.c) and the helper's (inflight_poll.c). inflight.h defines
 * the nouns. Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/* Adds to what the stream's device has in flight, or takes off it; shuts the fast path where that is enough. */
void inflight_count_into_device(struct inflight_stream *stream, int32_t launches, int64_t ns);

/*
 * Records a mark behind all unmarked launches. `sample`: the timed pair that it ends, or INFLIGHT_NO_SAMPLE. The caller holds
 * stream->lock.
 */
void inflight_push_mark(struct inflight_stream *stream, int sample);

/* inflight_poll.c; in a forked child. */
void inflight_poll_reset(void);
