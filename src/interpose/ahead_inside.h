/*
 * Between the parts of launch-ahead:
 *
 *   ahead.c        on or off; waiting for the queue, a place in it, and what a call goes to
 *   ahead_work.c   what is queued of work, and what proves that it may be
 *   ahead_meet.c   passed functions: events, questions, and all that wait; ahead_attribute.c: functions' attributes
 *   ahead_proof.c, ahead_queue.c, ahead_feed.c   what is known of handles; the ring; who empties it
 */
#ifndef ALLOT_INTERPOSE_AHEAD_INSIDE_H
#define ALLOT_INTERPOSE_AHEAD_INSIDE_H

#include "interpose/ahead_queue.h"
#include "interpose/thunk.h"

struct flight_stream;

/* What a call goes to. */
struct ahead_target {
	CUcontext context;
	CUstream stream;
	struct flight_stream *record;
};

/* For the log alone: why launches were not queued. */
struct ahead_counts {
	_Atomic uint64_t no_stream, unproved, unknown;
};

SYS_DATA struct ahead_counts ahead_counts;

static inline void ahead_count(_Atomic uint64_t *of)
{
	atomic_fetch_add_explicit(of, 1, memory_order_relaxed);
}

/* The default stream by the name that it has in every thread; or CU_STREAM_PER_THREAD. */
static inline CUstream ahead_stream_of(const struct work *work)
{
	if (work->stream)
		return work->stream;
	return work->streams == LEGACY ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
}

/* May anything be queued now? Makes ring and feeder when they are first needed. */
bool ahead_is_on(void);

/* Was it ever, and may it be again? Without that nothing needs to be noted. */
bool ahead_is_used(void);

/* True for the first device that the process works on; another switches all of this off. */
bool ahead_is_only_device(int device);

/* False: a stream that the feeder can't name, or of another context, or not known to be one. */
bool ahead_find_target(const struct work *work, struct ahead_target *ret_target);

/*
 * A place in the queue, waited for as long as it is full; NULL: nothing may be queued any more, or the driver
 * may be full: who launches then blocks in it, and must not be the feeder, whom others wait for. Locks it;
 * ahead_push() unlocks. Small: of what takes no time of the GPU.
 */
struct ahead_record *ahead_reserve(uint32_t bytes, uint64_t ns);
struct ahead_record *ahead_reserve_small(void);
void ahead_push(struct ahead_record *record);

/* Not queued: waits, and takes what was kept. True: that ends the call. */
bool ahead_settle_call(const char *who, CUresult *ret_result);

/* ahead_attribute.c: of the four functions that set and tell attributes of functions. */
bool ahead_meet_attribute(uint32_t thunk, const uintptr_t argument[6], CUresult *ret_result);
void ahead_forget_lowered(void); /* in a forked child */

#endif
