/*
 * A sample is one unit of work that is timed by a pair of events around it. A stream may have several in progress,
 * because a tenant may run alone for only a few milliseconds, in which the helper polls only a few times.
 *
 * Thread safe. Beginning a sample takes the stream's lock. To learn from a sample, or to drop one, the caller must
 * hold that lock.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/*
 * Takes a free sample of the stream and records its start. `most` limits how many may be in progress, including
 * this one. Returns INFLIGHT_NO_SAMPLE if none is free or no event could be made. The caller must record the
 * sample's end behind the work, or give the sample back.
 */
int inflight_sample_begin(struct inflight_stream *stream, struct estimate *estimate,
			  bool is_beside_others, uint32_t most);
/* Gives the sample back without learning from it. Does nothing for INFLIGHT_NO_SAMPLE. */
void inflight_sample_give(struct inflight_stream *stream, int sample);
/* Returns the sample's end event, which the caller records behind the work. */
CUevent inflight_sample_end(const struct inflight_stream *stream, int sample);
/*
 * Call when the sample's end was reached, or never will be. Learns the time if it was reached, and gives the
 * sample back.
 */
void inflight_sample_learn(struct inflight_stream *stream, int sample);
/* Call when the stream ends: drops its samples' events. context_lives is false if the events have ended with their context. */
void inflight_sample_drop(struct inflight_stream *stream, bool context_lives);
/* Call in a forked child, where the events do not exist: forgets the stream's samples. */
void inflight_sample_forget(struct inflight_stream *stream);
