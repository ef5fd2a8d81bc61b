/*
 * In-flight work: per stream, how much was handed to the driver and not yet seen to end.
 *
 * Nouns:
 *   record     one stream's counts (inflight_record.h)
 *   mark       an untimed event behind launched work: once reached, that work has ended
 *   sample     a pair of timed events around one unit of work (inflight_sample.h)
 *   overflow   the record of all streams that found no place in the table (inflight_overflow.h)
 *
 * The launching thread counts, and sometimes records a mark. Only the helper thread queries marks, since a query from another
 * thread breaks a capture in global mode. Where a stream goes quiet with unmarked work, the helper records the mark itself;
 * in free run once the device is quiet.
 *
 * Cost of a launch: in free run two relaxed counters, and one event in `mark_every` launches; under a lease a look-up of the
 * estimate, and an event for about 200 us of work.
 *
 * Thread safe. Records are never unmapped: a stale pointer is harmless.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"
#include "library/launch/inflight/work.h"
#include "library/loader/real.h"
#include "library/state/process_state.h"

/* In the slot, where the daemon sees it. */
void inflight_show_busy(struct region_slot_device *slot, struct inflight_device *d, bool is_busy);

/*
 * Where a NULL stream's hash leads: kept for the legacy default stream of the only context. As long as no other context was seen,
 * a launch into NULL is one into that, and the driver need not be asked.
 */
#define INFLIGHT_ONLY_PLACE 0

/* The stream that this thread used last. */
struct inflight_cache {
	CUstream handle;
	uint64_t owner;
	struct inflight_stream *stream;
	uint32_t streams_gone; /* as process_state has it while this holds */
};
SYS_DATA __thread struct inflight_cache inflight_cache;

/* The same as inflight_stream_of(), of a stream that is another one. Context NULL: not asked for yet. */
struct inflight_stream *inflight_look_up(CUstream handle, uint64_t owner, CUcontext context);

/* Whether the driver can be asked about it. A default stream, or what may be one of the program's. */
bool inflight_is_handle(CUstream handle);

/* The stream that `work` goes to, by a handle that means the same in every call. */
static inline CUstream inflight_handle_of(const struct work *work)
{
	if (work->stream)
		return work->stream;
	return work->streams == LEGACY ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
}

/* The record of the stream that `work` goes to, or its device's overflow record; NULL when there is no context or no stream. */
static inline struct inflight_stream *inflight_stream_of(const struct work *work)
{
	CUstream handle = inflight_handle_of(work);
	CUcontext context = NULL;
	uint64_t owner = 0;

	if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
		if (real.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
			return NULL;
		owner = (uint64_t)(uintptr_t)context;
		if (handle == CU_STREAM_PER_THREAD)
			owner ^= (uint64_t)(uintptr_t)&inflight_cache; /* differs from thread to thread */
	}
	if (likely(inflight_cache.handle == handle && inflight_cache.owner == owner &&
		   inflight_cache.streams_gone ==
			   atomic_load_explicit(&process_state.streams_gone, memory_order_acquire)))
		return inflight_cache.stream;
	return inflight_look_up(handle, owner, context);
}

/* Is that stream being captured? Asks the driver; call when process_state.captures is not zero. */
bool inflight_is_capturing(const struct work *work);

/*
 * Free run: one more launch on the stream; true when it is time for a mark. Threads that launch into one
 * stream at once may lose a count: the mark is behind all of them anyhow.
 */
static inline bool inflight_count(struct inflight_stream *s)
{
	uint32_t n = atomic_load_explicit(&s->unmarked, memory_order_relaxed) + 1;

	atomic_store_explicit(&s->launched,
			      atomic_load_explicit(&s->launched, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&s->unmarked, n, memory_order_relaxed);
	return n >= atomic_load_explicit(&s->mark_every, memory_order_relaxed);
}
/* Marks all that is unmarked. Does nothing to an overflow record. */
void inflight_mark_now(struct inflight_stream *stream);
/* The same after inflight_count() of that work; of an overflow record, its own mark. */
void inflight_mark_work(struct inflight_stream *stream, const struct work *work);

/*
 * Under a lease, around the launch: begin() predicts and starts a timed sample where one is wanted;
 * end() counts and marks.
 */
struct inflight_pass {
	/* Set before begin(). */
	bool pays;             /* ns is what is told where tenants share space */
	bool is_beside_others; /* what is timed may be longer than it is alone */
	uint32_t samples_most; /* of its stream under way, with this one: INFLIGHT_SAMPLES at most */

	struct estimate *estimate;
	uint64_t ns; /* by end(): as predicted */
	int sample;  /* INFLIGHT_NO_SAMPLE: it is not timed */
};
void inflight_begin(struct inflight_stream *stream, const struct work *work,
		    struct inflight_pass *pass);
void inflight_end(struct inflight_stream *stream, const struct work *work,
		  struct inflight_pass *pass, bool is_launched);

/*
 * Helper thread: queries all marks. Returns the devices (bits) with work in flight. `flush`: devices whose streams get their
 * mark at once. `in_free_run`: devices in free run where no other tenant waits. While something is launched there the device
 * is busy, and its quiet streams get their marks only once all are quiet: a mark is four driver calls, each of which takes
 * the driver's lock from launching threads.
 */
uint32_t inflight_poll(uint64_t now_ns, uint32_t flush, uint32_t in_free_run);

/*
 * No in-flight work ended while a thread waited for it: until some does, only later work takes up depth. A kernel that waits
 * for the program (persistent, a collective) lasts as long as its launches are held back. If its length counted, each launch
 * beside it would wait for that, and be as long the next time.
 */
void inflight_forgive(struct inflight_device *device);

/* The stream or context goes: its marks with it. Before the real call. */
void inflight_drop_stream(CUstream stream);
void inflight_drop_context(CUcontext context);

/*
 * Tells of a new context, before anything can be launched into it. Any but the first makes a NULL stream's context the
 * driver's to tell, for good. A context that was not told of is seen when something is launched through the gate, or marked.
 */
void inflight_context_seen(CUcontext context);

/* A capture begins: the helper records nothing from here on. */
void inflight_capture_begins(void);
void inflight_capture_ended(void);

/* In a forked child. */
void inflight_reset(void);
