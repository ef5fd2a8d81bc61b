/* The helper thread finds which marks were reached, and how long launches take on average. */
#include <string.h>

#include "library/launch/inflight/inflight.h"
#include "library/launch/inflight/inflight_inside.h"
#include "library/launch/inflight/inflight_overflow.h"
#include "library/launch/inflight/inflight_sample.h"
#include "library/launch/inflight/inflight_settle.h"
#include "library/loader/fast_path.h"
#include "library/sys/locks.h"

#define MARK_TARGET_NS (4 * NS_PER_MS) /* work between two marks in free run */
/*
 * The most launches that one mark may cover in free run. High, because recording a mark takes 0.1 us in the driver and runs
 * code that is not in the cache. Limited, because the device's totals include launches of free run only once a mark covers
 * them.
 */
#define MARK_MAX_LAUNCHES 256
/* Limits average_ns: the measured average includes time in which a host function or a wait delayed the stream. */
#define AVERAGE_MAX_NS (5 * NS_PER_MS)

static uint64_t seen_launches[REGION_MAX_DEVICES];

/* Free run: sets how many launches one mark covers. Doubles the number if no work was in flight at the poll (keeps_up). */
static void set_mark_every(struct inflight_stream *s, uint64_t average_ns, bool keeps_up)
{
	uint64_t every = atomic_load_explicit(&s->mark_every, memory_order_relaxed);

	if (keeps_up)
		every *= 2;
	else if (average_ns)
		every = MARK_TARGET_NS / average_ns;
	if (every < 1 || s->marks_each_launch)
		every = 1;
	if (every > MARK_MAX_LAUNCHES)
		every = MARK_MAX_LAUNCHES;
	atomic_store_explicit(&s->mark_every, (uint32_t)every, memory_order_relaxed);
}

static void learn_average(struct inflight_stream *s, uint64_t now_ns, uint32_t launches,
			  bool keeps_up)
{
	if (s->progress_ns && !keeps_up) {
		uint64_t sample = (now_ns - s->progress_ns) / launches;
		uint64_t known = atomic_load_explicit(&s->average_ns, memory_order_relaxed);
		uint64_t average = known ? (known * 3 + sample) / 4 : sample;

		if (average > AVERAGE_MAX_NS)
			average = AVERAGE_MAX_NS;
		atomic_store_explicit(&s->average_ns, average, memory_order_relaxed);
		set_mark_every(s, average, false);
	} else if (keeps_up) {
		set_mark_every(s, 0, true);
	}
	s->progress_ns = now_ns;
}

/* `launches` is how many launches the poll saw end. is_busy: others are still in flight. The caller holds s->lock. */
static void note_progress(struct inflight_stream *s, uint64_t now_ns, uint32_t launches,
			  bool is_busy)
{
	if (launches) {
		atomic_fetch_add(&inflight_devices[s->device].completed, launches);
		learn_average(s, now_ns, launches, !is_busy);
	} else if (is_busy && !s->progress_ns) {
		s->progress_ns = now_ns;
	}
	if (!is_busy)
		s->progress_ns = 0;
}

static CUresult query(const struct inflight_stream *s, uint32_t at)
{
	const struct inflight_mark *m = &s->ring[at % INFLIGHT_RING];

	return real.cuEventQuery(
		m->sample == INFLIGHT_NO_SAMPLE ? m->event : inflight_sample_end(s, m->sample));
}

/*
 * Removes the marks that were reached. Returns true while something is in flight. A query costs 0.3 us and the driver's lock,
 * so the last mark, which covers all the work, is queried first. After an error the work will not run, so the mark counts as
 * reached. The caller holds s->lock.
 */
static bool reap(struct inflight_stream *s, uint64_t now_ns)
{
	uint32_t launches = 0;
	bool all_done = s->tail != s->head && query(s, s->head - 1) != CUDA_ERROR_NOT_READY;

	while (s->tail != s->head) {
		struct inflight_mark *m = &s->ring[s->tail % INFLIGHT_RING];

		if (!all_done && query(s, s->tail) == CUDA_ERROR_NOT_READY)
			break;
		if (m->sample != INFLIGHT_NO_SAMPLE)
			inflight_sample_learn(s, m->sample);
		launches += m->launches;
		inflight_count_into_device(s, -(int32_t)m->launches, -(int64_t)m->ns);
		s->tail++;
	}
	note_progress(s, now_ns, launches, s->tail != s->head);
	return s->tail != s->head;
}

/* The caller holds s->lock. */
static bool reap_overflow(struct inflight_stream *s, uint64_t now_ns)
{
	uint32_t launches;
	uint64_t ns;

	inflight_overflow_reap(s, &launches, &ns);
	inflight_count_into_device(s, -(int32_t)launches, -(int64_t)ns);
	bool is_busy = atomic_load(&s->overflow_marks) != 0;
	note_progress(s, now_ns, launches, is_busy);
	return is_busy;
}

/*
 * The helper thread has no context of its own, and without a context the driver records no event: the work would seem to have
 * ended. So make the stream's context current. The caller holds s->lock, so the context lives.
 */
static void mark_in_context(struct inflight_stream *s)
{
	CUcontext before = NULL;
	bool is_borrowed = real.cuCtxSetCurrent && real.cuCtxGetCurrent(&before) == CUDA_SUCCESS &&
			   before != s->context && real.cuCtxSetCurrent(s->context) == CUDA_SUCCESS;

	inflight_push_mark(s, INFLIGHT_NO_SAMPLE);
	if (is_borrowed)
		real.cuCtxSetCurrent(before);
}

/* Records no mark during a capture, because the capture might include the event. */
static void mark_tail(struct inflight_stream *s)
{
	WITH_LOCK(&locks.inflight_capture);
	if (atomic_load(&process_state.captures) == 0 && !s->marks_each_launch)
		mark_in_context(s);
}

static uint32_t devices_launching(uint32_t devices)
{
	uint32_t launching = 0;

	for (int i = 0; i < REGION_MAX_DEVICES; i++) {
		if (!(devices & (1U << i)))
			continue;
		uint64_t launches = inflight_launches(i);
		if (launches != seen_launches[i])
			launching |= 1U << i;
		seen_launches[i] = launches;
	}
	return launching;
}

/*
 * Stops counting the unmarked work, because a thread has waited for all of it. A mark would take another tenant's work off the
 * GPU for a moment. If something is launched meanwhile, the counts are put back. The caller holds s->lock.
 */
static void drop_unmarked(struct inflight_stream *s, uint32_t launched)
{
	uint32_t unmarked = atomic_exchange(&s->unmarked, 0);
	uint32_t counted = atomic_exchange(&s->unmarked_counted, 0);
	uint64_t ns = atomic_exchange(&s->unmarked_ns, 0);

	if (atomic_load(&s->launched) == launched) {
		inflight_count_into_device(s, -(int32_t)counted, -(int64_t)ns);
		return;
	}
	atomic_fetch_add(&s->unmarked, unmarked);
	atomic_fetch_add(&s->unmarked_counted, counted);
	atomic_fetch_add(&s->unmarked_ns, ns);
}

/*
 * Returns true while the stream has work in flight. Records a mark behind unmarked work if `flush` is true, or if has_tail is
 * true and nothing was launched into the stream since the last poll. has_tail is false while a device in free run gets
 * launches.
 */
static bool poll_stream(struct inflight_stream *s, uint64_t now_ns, bool has_tail, bool flush)
{
	WITH_LOCK(&s->lock);
	if (!atomic_load(&s->in_use))
		return false;
	uint32_t launched = atomic_load_explicit(&s->launched, memory_order_relaxed);
	bool is_quiet = launched == s->seen_launched;

	s->seen_launched = launched;
	if (launched == atomic_load(&s->ended) &&
	    atomic_load_explicit(&s->unmarked, memory_order_relaxed))
		drop_unmarked(s, launched);
	if (atomic_load_explicit(&s->unmarked, memory_order_relaxed) &&
	    ((is_quiet && has_tail) || flush))
		mark_tail(s);
	bool is_busy = inflight_is_overflow(s) ? reap_overflow(s, now_ns) : reap(s, now_ns);
	return is_busy || atomic_load_explicit(&s->unmarked, memory_order_relaxed) != 0;
}

uint32_t inflight_poll(uint64_t now_ns, uint32_t flush, uint32_t in_free_run)
{
	uint32_t end = atomic_load(&inflight_used_count), busy = 0;
	uint32_t launching = devices_launching(in_free_run);

	for (uint32_t i = 0; i < end; i++) {
		struct inflight_stream *s = inflight_used_stream(i);
		if (!atomic_load_explicit(&s->in_use, memory_order_relaxed))
			continue;
		uint32_t bit = 1U << s->device;
		if (poll_stream(s, now_ns, !(launching & bit), flush & bit))
			busy |= bit;
	}
	for (int i = 0; i < REGION_MAX_DEVICES; i++) {
		struct inflight_device *d = &inflight_devices[i];
		if (atomic_load(&d->waiters)) {
			atomic_fetch_add(&d->progress, 1);
			sys_futex_wake(&d->progress, INT32_MAX);
		}
	}
	return busy;
}

void inflight_capture_begins(void)
{
	WITH_LOCK(&locks.inflight_capture);
	atomic_fetch_add(&process_state.captures, 1);
	fast_path_close(FAST_PATH_ALL);
}

void inflight_capture_ended(void)
{
	uint32_t n = atomic_load(&process_state.captures);

	while (n && !atomic_compare_exchange_weak(&process_state.captures, &n, n - 1))
		;
}

void inflight_poll_reset(void)
{
	memset(seen_launches, 0, sizeof(seen_launches));
}
