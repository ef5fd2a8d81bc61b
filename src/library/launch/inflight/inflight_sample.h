/*
 * A sample is one unit of work that is timed, by a pair of events around it. A stream may have several under way: a tenant may
 * be alone for a few milliseconds only, and the helper looks a few times in these.
 *
 * Thread safe. To begin a sample takes the stream's lock; to learn from one, or to drop it, the caller holds that lock.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/*
 * Takes one of the stream's, of which `most` may be under way then, and records its start; INFLIGHT_NO_SAMPLE: there is none, or
 * no event could be made. Its end is the caller's to record, behind the work, or it is to be given back.
 */
int inflight_sample_begin(struct inflight_stream *stream, struct estimate *estimate,
			  bool is_beside_others, uint32_t most);
/* INFLIGHT_NO_SAMPLE: nothing is given. */
void inflight_sample_give(struct inflight_stream *stream, int sample);
CUevent inflight_sample_end(const struct inflight_stream *stream, int sample);
/* Its end was reached, or never will be: what it took is learned in the first case, and it is given back. */
void inflight_sample_learn(struct inflight_stream *stream, int sample);
/* The stream goes, and its events. */
void inflight_sample_drop(struct inflight_stream *stream, bool context_lives);
/* In a forked child, which has no events. */
void inflight_sample_forget(struct inflight_stream *stream);
