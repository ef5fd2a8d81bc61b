/*
 * In-flight work: how much of each stream's work was handed to the driver and has not been seen to end.
 *
 * Words:
 *   record     one stream's counts (inflight_record.h)
 *   mark       an untimed event behind launched work: when the GPU reaches it, that work has ended
 *   sample     a pair of timed events around one unit of work (inflight_sample.h)
 *   overflow   a device's record for all streams that found no place in the table (inflight_overflow.h)
 *   free run   LEASE_FREE, under which launches are counted but not predicted
 *
 * The launching thread counts launches, and sometimes records a mark. Only the helper thread queries marks, because a query
 * from another thread breaks a capture in global mode. The helper thread also records a mark behind the last work of a stream
 * that is quiet: nothing was launched into it since the last poll. In free run it waits until all streams of the device are
 * quiet.
 *
 * A launch costs two relaxed counters in free run, and one event per `mark_every` launches. Under a lease it costs a lookup of
 * the estimate, and one event per about 200 us of work.
 *
 * Thread safe. Records are never unmapped, so a stale pointer is harmless.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"
#include "library/launch/inflight/work.h"
#include "library/loader/real.h"
#include "library/state/process_state.h"

/* Sets `busy` in the slot, and its copy shows_busy. If is_busy is false, also closes the device's fast path. */
void inflight_show_busy(struct region_slot_device *slot, struct inflight_device *d, bool is_busy);

/* The record of the only context's legacy default stream. Until a second context is seen, NULL means this stream. */
#define INFLIGHT_ONLY_PLACE 0

struct inflight_cache {
	CUstream handle;
	uint64_t owner;
	struct inflight_stream *stream;
	/* The cache is valid while process_state.streams_destroyed has this value. */
	uint32_t streams_destroyed;
};
SYS_DATA __thread struct inflight_cache inflight_cache;

/* For a stream that is not in the cache. Asks the driver for the context if `context` is NULL. */
struct inflight_stream *inflight_look_up(CUstream handle, uint64_t owner, CUcontext context);

/* True for a default stream, or an address that can be read: only then may the driver be asked about the handle. */
bool inflight_is_handle(CUstream handle);

/* The stream of `work`, as a handle that means the same in every call. */
static inline CUstream inflight_handle_of(const struct work *work)
{
	if (work->stream)
		return work->stream;
	return work->streams == LEGACY ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
}

/* NULL if there is no context or no such stream. A stream without a place in the table has the device's overflow record. */
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
			/* The address differs between threads. */
			owner ^= (uint64_t)(uintptr_t)&inflight_cache;
	}
	if (likely(inflight_cache.handle == handle && inflight_cache.owner == owner &&
		   inflight_cache.streams_destroyed ==
			   atomic_load_explicit(&process_state.streams_destroyed,
						memory_order_acquire)))
		return inflight_cache.stream;
	return inflight_look_up(handle, owner, context);
}

/* Asks the driver, so call only if process_state.captures is not 0. */
bool inflight_is_capturing(const struct work *work);

/*
 * Free run: counts a launch. Returns true if mark_every launches have no mark; then the caller must record one. Threads that
 * launch into one stream at the same time may lose a count, but the mark is behind all their launches anyway.
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
/* Records a mark behind all unmarked work. Does nothing for an overflow record, in which each launch gets its own mark. */
void inflight_mark_now(struct inflight_stream *stream);
/* Like inflight_mark_now(), but also in an overflow record. Call after inflight_count() for the launch of `work`. */
void inflight_mark_work(struct inflight_stream *stream, const struct work *work);

/*
 * A launch under a lease. inflight_begin() finds the estimate, and starts a timed sample if one is needed. inflight_end()
 * counts the launch. It records a mark if the launch is timed or of unknown length, or if enough launched work has no mark
 * (LEASE_MARK_NS).
 */
struct inflight_pass {
	/* Set these before inflight_begin(): */
	/* The tenant runs at the same time as others, and pays by length. So `ns` is the estimate's stable value. */
	bool pays;
	/* Other tenants' work may run too, so a sample may be too long. */
	bool is_concurrent;
	/* How many samples of the stream may be in progress, including this one; at most INFLIGHT_SAMPLES. */
	uint32_t samples_most;

	struct estimate *estimate;
	uint64_t ns; /* set by inflight_end(): the predicted length */
	int sample;  /* INFLIGHT_NO_SAMPLE if the work is not timed */
};
void inflight_begin(struct inflight_stream *stream, const struct work *work,
		    struct inflight_pass *pass);
void inflight_end(struct inflight_stream *stream, const struct work *work,
		  struct inflight_pass *pass, bool is_launched);

/*
 * For the helper thread: queries all marks. Returns the devices (bits) with work in flight. Records a mark behind unmarked
 * work:
 *
 *   on the devices `flush`         at once
 *   on the devices `in_free_run`   if nothing was launched on the whole device since the last poll
 *   on other devices               if nothing was launched into the stream since the last poll
 *
 * Marks are rare in free run, because a mark takes four driver calls, each with a lock that launching threads need.
 */
uint32_t inflight_poll(uint64_t now_ns, uint32_t flush, uint32_t in_free_run);

/*
 * Call when a thread waited for in-flight work and none ended. Until some of that work ends, the gate counts only later
 * launches. Otherwise a kernel that waits for its program (a persistent kernel, a collective) would hold back the launches that
 * it waits for.
 */
void inflight_ignore_stalled(struct inflight_device *device);

/* Call before the driver call that ends the stream, or the context with all its streams. */
void inflight_drop_stream(CUstream stream);
void inflight_drop_context(CUcontext context);

/*
 * Call for a new context before anything is launched into it. From the second context on, the driver is asked for the context
 * of a NULL stream. A context without this call is found when a launch into it passes the gate.
 */
void inflight_note_context(CUcontext context);

/* Call when a capture begins, and when it has ended. Meanwhile the helper thread records no events. */
void inflight_capture_begins(void);
void inflight_capture_ended(void);

void inflight_reset(void);
