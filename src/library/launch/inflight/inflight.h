/*
 * In-flight work: for each stream, how much was handed to the driver and not yet seen to end.
 *
 * Nouns:
 *   record     one stream's counts (inflight_record.h)
 *   mark       an untimed event behind launched work; when it is reached, that work has ended
 *   sample     a pair of timed events around one unit of work (inflight_sample.h)
 *   overflow   the record of all streams that found no place in the table (inflight_overflow.h)
 *
 * The launching thread counts, and sometimes records a mark. Only the helper thread queries marks, since a query from
 * another thread breaks a capture in global mode. If a stream goes quiet with unmarked work, the helper records the mark
 * itself; in free run it waits until the whole device is quiet.
 *
 * Cost of a launch: in free run, two relaxed counters, and one event per `mark_every` launches. Under a lease, a lookup of
 * the estimate, and one event per about 200 us of work.
 *
 * Thread safe. Records are never unmapped, so a stale pointer is harmless.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"
#include "library/launch/inflight/work.h"
#include "library/loader/real.h"
#include "library/state/process_state.h"

/* Sets `busy` in the slot, where the daemon reads it. */
void inflight_show_busy(struct region_slot_device *slot, struct inflight_device *d, bool is_busy);

/*
 * The place in the table of records to which the hash of a NULL stream leads. It is kept for the legacy default stream of the
 * only context. While no other context was seen, a launch into NULL goes to that stream, and the driver need not be asked.
 */
#define INFLIGHT_ONLY_PLACE 0

/* The stream that this thread used last. */
struct inflight_cache {
	CUstream handle;
	uint64_t owner;
	struct inflight_stream *stream;
	/* the value of process_state.streams_gone for which this entry is valid */
	uint32_t streams_gone;
};
SYS_DATA __thread struct inflight_cache inflight_cache;

/*
 * As inflight_stream_of(), for a stream that is not in the cache. If `context` is NULL, the function asks the
 * driver for it.
 */
struct inflight_stream *inflight_look_up(CUstream handle, uint64_t owner, CUcontext context);

/* True if the driver may be asked about the handle: a default stream, or an address that can be read. */
bool inflight_is_handle(CUstream handle);

/* Returns the stream of `work` as a handle that means the same in every call. */
static inline CUstream inflight_handle_of(const struct work *work)
{
	if (work->stream)
		return work->stream;
	return work->streams == LEGACY ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
}

/*
 * Returns the record of the stream of `work`, or its device's overflow record. Returns NULL if there is no context
 * or no such stream.
 */
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
			owner ^= (uint64_t)(uintptr_t)&inflight_cache; /* differs between threads */
	}
	if (likely(inflight_cache.handle == handle && inflight_cache.owner == owner &&
		   inflight_cache.streams_gone ==
			   atomic_load_explicit(&process_state.streams_gone, memory_order_acquire)))
		return inflight_cache.stream;
	return inflight_look_up(handle, owner, context);
}

/* True if the stream of `work` is being captured. Asks the driver; call only if process_state.captures is not zero. */
bool inflight_is_capturing(const struct work *work);

/*
 * Free run: counts a launch on the stream. Returns true when it is time for a mark. Threads that launch into one
 * stream at the same time may lose a count, but the mark is behind all their launches anyway.
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
/* Records a mark behind all unmarked work. Does nothing for an overflow record. */
void inflight_mark_now(struct inflight_stream *stream);
/*
 * Like inflight_mark_now(). Call after inflight_count() for the launch of `work`. In an overflow record, that launch gets a
 * mark of its own.
 */
void inflight_mark_work(struct inflight_stream *stream, const struct work *work);

/*
 * Used around a launch under a lease. inflight_begin() predicts, and starts a timed sample if one is needed;
 * inflight_end() counts and marks.
 */
struct inflight_pass {
	/* Set these before inflight_begin(). */
	bool pays; /* the tenant shares space: `ns` is the estimate's stable value */
	/* other tenants' work runs too: a sample may be longer than the work takes alone */
	bool is_beside_others;
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
 * Helper thread: queries all marks. Returns the devices (bits) with work in flight. `flush`: devices whose streams get their
 * marks at once. `in_free_run`: devices in free run where no thread waits for depth. On such a device, streams that have gone
 * quiet get their marks only when nothing is launched on the device any more; until then it is busy anyway. A mark takes four
 * driver calls, and each takes the driver's lock from launching threads.
 */
uint32_t inflight_poll(uint64_t now_ns, uint32_t flush, uint32_t in_free_run);

/*
 * Call when no in-flight work ended while a thread waited for it. Until some work ends, only later work counts towards the
 * depth. A kernel that waits for the program (persistent, a collective) lasts as long as the program's launches are held back.
 * If its length counted, each other launch would wait that long, and the kernel would last as long the next time.
 */
void inflight_forgive(struct inflight_device *device);

/* Call before the driver call that ends the stream or context: drops its marks. */
void inflight_drop_stream(CUstream stream);
void inflight_drop_context(CUcontext context);

/*
 * Call for a new context before anything is launched into it. From the second context on, the driver must be asked
 * for the context of a NULL stream, for ever. A context that was not reported here is detected when something is
 * launched in it through the gate, or marked.
 */
void inflight_context_seen(CUcontext context);

/* Call when a capture begins, and when it has ended. While any capture is in progress, the helper records nothing. */
void inflight_capture_begins(void);
void inflight_capture_ended(void);

/* Call in a forked child: forgets the state of the parent. */
void inflight_reset(void);
