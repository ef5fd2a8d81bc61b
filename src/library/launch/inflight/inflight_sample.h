/*
 * A sample is one unit of work that two timed events enclose. A stream may have several samples in progress: a tenant may be
 * alone on the GPU for only a few milliseconds, and a sample ends only at a poll.
 *
 * Thread safe. inflight_sample_begin() takes the stream's lock. Callers of inflight_sample_end(), inflight_sample_learn() and
 * inflight_sample_drop() hold that lock.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/*
 * `most`: how many samples of the stream may be in progress, including this one. Returns INFLIGHT_NO_SAMPLE if that many
 * already are. The caller records the sample's end behind the work, or releases the sample.
 */
int inflight_sample_begin(struct inflight_stream *stream, struct estimate *estimate,
			  bool is_concurrent, uint32_t most);
/* Learns nothing from the sample. Does nothing for INFLIGHT_NO_SAMPLE. */
void inflight_sample_release(struct inflight_stream *stream, int sample);
/* The end event, which the caller records behind the work. */
CUevent inflight_sample_end(const struct inflight_stream *stream, int sample);
/* Call when the GPU has reached the sample's end, or never will. In the first case, learns the time. Releases the sample. */
void inflight_sample_learn(struct inflight_stream *stream, int sample);
/* Call when the stream ends. context_lives is false if the events have ended with their context. */
void inflight_sample_drop(struct inflight_stream *stream, bool context_lives);
/* Call in a forked child, where the samples' events do not exist. */
void inflight_sample_forget(struct inflight_stream *stream);
