#include "library/launch/inflight/inflight.h"

#include <string.h>

#include "library/launch/inflight/inflight_inside.h"
#include "library/launch/inflight/inflight_overflow.h"
#include "library/launch/inflight/inflight_sample.h"
#include "library/loader/fast_path.h"
#include "library/loader/real.h"
#include "library/sys/locks.h"
#include "library/trace/trace_record.h"

#define PROBES 16 /* number of places, beginning at the hash, where a stream's record may be */
/*
 * The length assumed for work of unknown length, if the tenant runs at the same time as others, or if at least UNKNOWN_MOST
 * launches are in flight. It is long, so that depth_ns, the bound of work in flight, admits only a few such launches.
 */
#define UNKNOWN_NS (1 * NS_PER_MS)
#define UNKNOWN_MOST 4
/* Under a lease, a mark is recorded behind this much predicted work, or this many launches. */
#define LEASE_MARK_NS (200 * NS_PER_US)
#define LEASE_MARK_LAUNCHES 16
/*
 * If depth_ns is at least 2 * MARKS_IN_DEPTH * LEASE_MARK_NS, marks under a lease are rarer: about MARKS_IN_DEPTH per depth_ns,
 * and at most MARKS_RARER_MOST times rarer. With so much work in flight, predictions need not be exact, so only launches of
 * unknown length are timed. More marks and timing would cost a training several percent of its speed.
 */
#define MARKS_IN_DEPTH 10
#define MARKS_RARER_MOST 10

struct inflight_device inflight_devices[REGION_MAX_DEVICES];

struct inflight_stream inflight_streams[INFLIGHT_RECORDS];
static struct {
	_Atomic uintptr_t handle; /* 0 if the place is free */
	_Atomic uint64_t owner;
} keys[INFLIGHT_STREAMS];
/* The first context that was seen, and whether another was seen. Guarded by locks.inflight_table. */
static CUcontext only_context;
static bool has_several_contexts;
uint16_t inflight_used[INFLIGHT_RECORDS];
_Atomic uint32_t inflight_used_count;

__thread struct inflight_cache inflight_cache;

static bool is_stored_at(uint32_t place, CUstream handle, uint64_t owner)
{
	return atomic_load_explicit(&keys[place].handle, memory_order_acquire) == (uintptr_t)handle &&
	       atomic_load_explicit(&keys[place].owner, memory_order_relaxed) == owner;
}

static struct inflight_stream *find(CUstream handle, uint64_t owner)
{
	uint32_t start = inflight_hash(handle, owner);

	if (is_stored_at(INFLIGHT_ONLY_PLACE, handle, owner))
		return &inflight_streams[INFLIGHT_ONLY_PLACE];
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = (start + i) % INFLIGHT_STREAMS;
		if (is_stored_at(at, handle, owner))
			return &inflight_streams[at];
	}
	return NULL;
}

static void init_stream(struct inflight_stream *s, CUstream handle, uint64_t owner,
			CUcontext context, int device)
{
	sys_lock(&s->lock);
	s->handle = handle;
	s->owner = owner;
	s->context = context;
	s->device = device;
	s->marks_each_launch = handle == CU_STREAM_PER_THREAD || inflight_is_overflow(s);
	s->head = s->tail = 0;
	s->seen_launched = atomic_load(&s->launched);
	atomic_store(&s->synced, s->seen_launched);
	atomic_store(&s->ended, s->seen_launched);
	s->progress_ns = 0;
	atomic_store(&s->unmarked, 0);
	atomic_store(&s->unmarked_counted, 0);
	atomic_store(&s->unmarked_ns, 0);
	atomic_store(&s->mark_every, 1);
	atomic_store(&s->average_ns, 0);
	atomic_store(&s->samples_taken, 0);
	atomic_store(&s->overflow_marks, 0);
	s->lease_at = (uint32_t)(offsetof(struct region_control, device) +
				 (size_t)device * sizeof(struct region_control_device) +
				 offsetof(struct region_control_device, lease));
	/*
	 * A default stream's record has an owner. The fast path knows only the handle, so launches into such a stream take the
	 * gate. But the fast path finds the record at INFLIGHT_ONLY_PLACE by key 0.
	 */
	atomic_store(&s->fast_path_device,
		     owner && s != &inflight_streams[INFLIGHT_ONLY_PLACE] ? 0 : 1U << device);
	atomic_store(&s->fast_path_key, owner ? 0 : (uintptr_t)handle);
	atomic_store(&s->in_use, true);
	sys_unlock(&s->lock);
}

/* inflight_used lists all records ever used. Call before the record is used. The caller holds locks.inflight_table. */
static void add_to_used(uint32_t at)
{
	uint32_t n = atomic_load(&inflight_used_count);

	if (inflight_streams[at].is_in_used)
		return;
	inflight_used[n] = (uint16_t)at;
	atomic_store(&inflight_used_count, n + 1);
	inflight_streams[at].is_in_used = true;
}

/* The caller holds locks.inflight_table. */
static void note_context(CUcontext context)
{
	if (!only_context)
		only_context = context;
	if (context == only_context)
		return;
	has_several_contexts = true;
	/* From now on the first context's default stream is treated like any other. */
	atomic_store(&inflight_streams[INFLIGHT_ONLY_PLACE].fast_path_device, 0);
}

void inflight_note_context(CUcontext context)
{
	WITH_LOCK(&locks.inflight_table);
	note_context(context);
}

/* Returns a free place, or INFLIGHT_STREAMS if there is none. The caller holds locks.inflight_table. */
static uint32_t free_place(CUstream handle, uint64_t owner, CUcontext context)
{
	uint32_t start = inflight_hash(handle, owner);

	if (handle == CU_STREAM_LEGACY && context == only_context && !has_several_contexts)
		return INFLIGHT_ONLY_PLACE;
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = (start + i) % INFLIGHT_STREAMS;
		if (at != INFLIGHT_ONLY_PLACE && !atomic_load(&keys[at].handle))
			return at;
	}
	return INFLIGHT_STREAMS;
}

/* The record for the device's streams that found no place. The caller holds locks.inflight_table. */
static struct inflight_stream *overflow_of(int device)
{
	uint32_t at = INFLIGHT_STREAMS + (uint32_t)device;

	if (!atomic_load(&inflight_streams[at].in_use)) {
		add_to_used(at);
		/* An overflow record has no stream of its own. The nonzero owner keeps launches from taking the fast path. */
		init_stream(&inflight_streams[at], NULL, 1, NULL, device);
	}
	return &inflight_streams[at];
}

static struct inflight_stream *add(CUstream handle, uint64_t owner, CUcontext context)
{
	int device = process_current_index();

	if (device < 0)
		return NULL;
	WITH_LOCK(&locks.inflight_table);
	struct inflight_stream *s = find(handle, owner);
	if (s)
		return s;
	note_context(context);
	uint32_t at = free_place(handle, owner, context);
	if (at == INFLIGHT_STREAMS)
		return overflow_of(device);
	add_to_used(at);
	init_stream(&inflight_streams[at], handle, owner, context, device);
	atomic_store(&keys[at].owner, owner);
	atomic_store_explicit(&keys[at].handle, (uintptr_t)handle, memory_order_release);
	return &inflight_streams[at];
}

/*
 * The driver dereferences a handle unchecked, so never ask it about a handle that points to unreadable memory. The program's
 * own call with that handle may be harmless: the driver may refuse another argument first.
 */
bool inflight_is_handle(CUstream handle)
{
	return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD ||
	       sys_is_readable(handle);
}

struct inflight_stream *inflight_look_up(CUstream handle, uint64_t owner, CUcontext context)
{
	uint32_t gone = atomic_load_explicit(&process_state.streams_destroyed, memory_order_acquire);
	struct inflight_stream *s = find(handle, owner);

	if (!s) {
		if (!inflight_is_handle(handle))
			return NULL;
		if (!context && real.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
			return NULL;
		s = context ? add(handle, owner, context) : NULL;
	}
	if (s)
		inflight_cache = (struct inflight_cache){ handle, owner, s, gone };
	return s;
}

bool inflight_is_capturing(const struct work *work)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUstream stream = work->stream;

	if (!real.cuStreamIsCapturing)
		return false;
	if (!stream && work->streams == PER_THREAD)
		stream = CU_STREAM_PER_THREAD;
	/* The driver returns an error for the legacy stream while another stream is captured. No event may be recorded then. */
	return !inflight_is_handle(stream) ||
	       real.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void inflight_count_into_device(struct inflight_stream *s, int32_t launches, int64_t ns)
{
	struct inflight_device *d = &inflight_devices[s->device];

	atomic_fetch_add_explicit(&d->inflight, launches, memory_order_relaxed);
	ns += atomic_fetch_add_explicit(&d->inflight_ns, ns, memory_order_relaxed);
	/* Some work that inflight_ignore_stalled() excluded has ended. Exclude only work still in flight. */
	if (unlikely(ns < atomic_load_explicit(&d->stalled_ns, memory_order_relaxed)))
		atomic_store_explicit(&d->stalled_ns, ns > 0 ? ns : 0, memory_order_relaxed);
	/* After a subtraction that leaves the sum this large, the fast path is closed already. Closing it again is harmless. */
	if (ns >= (int64_t)process_free_depth_ns(process_control_device(s->device)))
		fast_path_close(1U << s->device);
}

void inflight_ignore_stalled(struct inflight_device *d)
{
	atomic_store_explicit(&d->stalled_ns,
			      atomic_load_explicit(&d->inflight_ns, memory_order_relaxed),
			      memory_order_relaxed);
}

void inflight_show_busy(struct region_slot_device *slot, struct inflight_device *d, bool is_busy)
{
	if (is_busy) {
		atomic_store(&d->shows_busy, true);
		atomic_store(&slot->busy, true);
		return;
	}
	/* Clear `busy` first: once shows_busy is cleared, a launching thread may set `busy` again. */
	atomic_store(&slot->busy, false);
	atomic_store_explicit(&d->idle_since_ns, sys_now_ns(), memory_order_relaxed);
	atomic_store(&d->shows_busy, false);
	fast_path_close(1U << (d - inflight_devices));
}

void inflight_push_mark(struct inflight_stream *s, int sample)
{
	struct inflight_mark *m = &s->ring[s->head % INFLIGHT_RING];

	if (s->head - s->tail == INFLIGHT_RING) {
		inflight_sample_release(s, sample);
		return; /* The ring is full. The next event covers these launches too. */
	}
	bool is_sample = sample != INFLIGHT_NO_SAMPLE;
	if (!is_sample && !m->event && real.cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING))
		m->event = NULL;
	uint32_t launches = atomic_exchange(&s->unmarked, 0);
	uint32_t counted = atomic_exchange(&s->unmarked_counted, 0);
	uint64_t ns = atomic_exchange(&s->unmarked_ns, 0);
	uint64_t average = atomic_load_explicit(&s->average_ns, memory_order_relaxed);

	if (launches < counted)
		launches = counted;
	uint64_t late_ns = (launches - counted) * average;
	inflight_count_into_device(s, (int32_t)(launches - counted), (int64_t)late_ns);
	CUevent event = is_sample ? inflight_sample_end(s, sample) : m->event;
	if (!event || real.cuEventRecord(event, s->handle) != CUDA_SUCCESS) {
		/* The context is broken, or a capture has included the stream. Stop counting this work. */
		inflight_count_into_device(s, -(int32_t)launches, -(int64_t)(ns + late_ns));
		inflight_sample_release(s, sample);
		return;
	}
	m->sample = sample;
	m->launches = launches;
	m->ns = ns + late_ns;
	s->head++;
}

void inflight_mark_now(struct inflight_stream *s)
{
	if (inflight_is_overflow(s))
		return;
	WITH_LOCK(&s->lock);
	if (atomic_load(&s->in_use))
		inflight_push_mark(s, INFLIGHT_NO_SAMPLE);
}

static void mark_overflow(struct inflight_stream *s, const struct work *work, uint64_t ns)
{
	inflight_count_into_device(s, 1, (int64_t)ns);
	if (!inflight_overflow_mark(s, inflight_handle_of(work), ns))
		inflight_count_into_device(s, -1, -(int64_t)ns);
}

void inflight_mark_work(struct inflight_stream *s, const struct work *work)
{
	if (likely(!inflight_is_overflow(s))) {
		inflight_mark_now(s);
		return;
	}
	atomic_store_explicit(&s->unmarked, 0, memory_order_relaxed);
	mark_overflow(s, work, atomic_load_explicit(&s->average_ns, memory_order_relaxed));
}

/* The factor by which LEASE_MARK_NS and LEASE_MARK_LAUNCHES are multiplied; 1 if depth_ns is small. */
static uint64_t mark_interval_factor(const struct inflight_stream *s)
{
	uint64_t depth_ns = atomic_load_explicit(&process_control_device(s->device)->depth_ns,
						 memory_order_relaxed);
	uint64_t factor = depth_ns / (MARKS_IN_DEPTH * LEASE_MARK_NS);

	return factor < 1 ? 1 : factor > MARKS_RARER_MOST ? MARKS_RARER_MOST : factor;
}

static bool wants_sample(const struct inflight_stream *s, const struct inflight_pass *pass)
{
	if (inflight_is_overflow(s))
		return false;
	if (pass->is_concurrent)
		return estimate_wants_bound(pass->estimate);
	if (pass->pays)
		return estimate_wants_stable_sample(pass->estimate);
	if (mark_interval_factor(s) > 1)
		return !atomic_load_explicit(&pass->estimate->ns, memory_order_relaxed);
	return estimate_wants_sample(pass->estimate);
}

void inflight_begin(struct inflight_stream *s, const struct work *work, struct inflight_pass *pass)
{
	pass->sample = INFLIGHT_NO_SAMPLE;
	pass->estimate = estimate_of(work);
	if (wants_sample(s, pass))
		pass->sample = inflight_sample_begin(s, pass->estimate, pass->is_concurrent,
						     pass->samples_most);
}

void inflight_end(struct inflight_stream *s, const struct work *work, struct inflight_pass *pass,
		  bool is_launched)
{
	if (!is_launched) {
		inflight_sample_release(s, pass->sample);
		return;
	}
	uint64_t ns = pass->pays ? estimate_stable_ns(pass->estimate)
				 : atomic_load_explicit(&pass->estimate->ns, memory_order_relaxed);
	bool is_known = ns != 0;

	if (!is_known)
		ns = atomic_load_explicit(&s->average_ns, memory_order_relaxed);
	pass->ns = ns;
	/* Otherwise a program whose launches all differ could fill the driver's queue before any of them has ended. */
	if (!ns && (pass->pays || atomic_load_explicit(&inflight_devices[s->device].inflight,
						       memory_order_relaxed) >= UNKNOWN_MOST))
		ns = UNKNOWN_NS;
	atomic_fetch_add_explicit(&s->launched, 1, memory_order_relaxed);
	if (unlikely(inflight_is_overflow(s))) {
		mark_overflow(s, work, ns);
		return;
	}
	uint32_t n = atomic_fetch_add_explicit(&s->unmarked, 1, memory_order_relaxed) + 1;
	atomic_fetch_add_explicit(&s->unmarked_counted, 1, memory_order_relaxed);
	uint64_t sum = atomic_fetch_add_explicit(&s->unmarked_ns, ns, memory_order_relaxed) + ns;
	inflight_count_into_device(s, 1, (int64_t)ns);
	uint64_t factor = mark_interval_factor(s);
	if (pass->sample != INFLIGHT_NO_SAMPLE || !is_known || s->marks_each_launch ||
	    sum >= factor * LEASE_MARK_NS || n >= factor * LEASE_MARK_LAUNCHES) {
		WITH_LOCK(&s->lock);
		if (atomic_load(&s->in_use))
			inflight_push_mark(s, pass->sample);
	}
}

/* context_lives is false if the events have ended with their context. The caller holds locks.inflight_table. */
static void drop(uint32_t at, bool context_lives)
{
	struct inflight_stream *s = &inflight_streams[at];

	WITH_LOCK(&s->lock);
	atomic_store(&s->fast_path_key, 0);
	atomic_store(&s->fast_path_device, 0);
	atomic_store(&keys[at].handle, 0);
	atomic_store(&s->in_use, false);
	for (; s->tail != s->head; s->tail++) {
		struct inflight_mark *m = &s->ring[s->tail % INFLIGHT_RING];
		inflight_count_into_device(s, -(int32_t)m->launches, -(int64_t)m->ns);
	}
	inflight_count_into_device(s, -(int32_t)atomic_exchange(&s->unmarked_counted, 0),
				   -(int64_t)atomic_exchange(&s->unmarked_ns, 0));
	atomic_fetch_add(&inflight_devices[s->device].launched_before,
			 atomic_exchange(&s->launched, 0));
	for (int i = 0; i < INFLIGHT_RING; i++) {
		if (s->ring[i].event && context_lives)
			real.cuEventDestroy_v2(s->ring[i].event);
		s->ring[i].event = NULL;
	}
	inflight_sample_drop(s, context_lives);
	atomic_fetch_add_explicit(&process_state.streams_destroyed, 1, memory_order_release);
}

void inflight_drop_stream(CUstream stream)
{
	WITH_LOCK(&locks.inflight_table);
	struct inflight_stream *s = stream ? find(stream, 0) : NULL;
	if (s)
		drop((uint32_t)(s - inflight_streams), true);
	else /* Threads may have cached the overflow record for the handle. Make them search. */
		atomic_fetch_add_explicit(&process_state.streams_destroyed, 1, memory_order_release);
}

/* Removes a context's marks. The caller holds locks.inflight_table. */
static void drop_from_overflow(struct inflight_stream *s, CUcontext context)
{
	uint32_t launches;
	uint64_t ns;

	inflight_overflow_drop(s, context, &launches, &ns);
	inflight_count_into_device(s, -(int32_t)launches, -(int64_t)ns);
}

void inflight_drop_context(CUcontext context)
{
	WITH_LOCK(&locks.inflight_table);
	trace_code_unloads();
	for (uint32_t i = 0; i < atomic_load(&inflight_used_count); i++) {
		struct inflight_stream *s = inflight_used_stream(i);
		if (!atomic_load(&s->in_use))
			continue;
		if (inflight_is_overflow(s))
			drop_from_overflow(s, context);
		else if (s->context == context)
			drop(inflight_used[i], false);
	}
	if (context == only_context && !has_several_contexts)
		only_context = NULL;
}

void inflight_reset(void)
{
	for (uint32_t i = 0; i < atomic_load(&inflight_used_count); i++) {
		memset(inflight_used_stream(i), 0, sizeof(inflight_streams[0]));
		inflight_sample_forget(inflight_used_stream(i));
	}
	inflight_overflow_reset();
	memset(keys, 0, sizeof(keys));
	memset(inflight_devices, 0, sizeof(inflight_devices));
	memset(&inflight_cache, 0, sizeof(inflight_cache));
	inflight_poll_reset();
	only_context = NULL;
	has_several_contexts = false;
	atomic_store(&inflight_used_count, 0);
}
