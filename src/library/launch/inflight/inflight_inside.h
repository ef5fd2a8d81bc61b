/* Shared by inflight.c (launching threads) and inflight_poll.c (the helper thread). Thread safe. */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/*
 * Adds to the device's in-flight work; negative values subtract. Closes the fast path if that work's predicted time reaches
 * process_free_depth_ns(), the most that may be in flight in free run.
 */
void inflight_count_into_device(struct inflight_stream *stream, int32_t launches, int64_t ns);

/* Records a mark behind unmarked launches, where `sample` ends (or INFLIGHT_NO_SAMPLE). The caller holds stream->lock. */
void inflight_push_mark(struct inflight_stream *stream, int sample);

void inflight_poll_reset(void);
