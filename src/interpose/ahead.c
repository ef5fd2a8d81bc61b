#include "interpose/ahead.h"

#include <string.h>

#include "interpose/ahead_feed.h"
#include "interpose/ahead_proof.h"
#include "interpose/ahead_queue.h"
#include "interpose/config.h"
#include "interpose/door.h"
#include "interpose/estimate.h"
#include "interpose/flight.h"
#include "interpose/log.h"
#include "interpose/real.h"
#include "interpose/thunk.h"

#include "driver/driver_versions.h"

/* What a launch is taken for before anything is known of it. */
#define UNKNOWN_NS (20 * NS_PER_US)
#define SLEEP_NS (50 * NS_PER_MS)
/* Beyond so much dynamic shared memory a function must have been told that it may. */
#define SHARED_FREE_BYTES (48U << 10)
#define ATTRIBUTE_MAX_DYNAMIC_SHARED 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

static _Atomic bool is_ready;     /* ring and feeder are there */
static _Atomic bool shares_event; /* other processes may know one */
static _Atomic int only_device;   /* of this process, + 1; 0: has not used any */
static _Atomic uint32_t kept; /* CUresult of a call that failed when it was handed over; under the lock */

/* For the log alone: what was queued, and why not. */
static struct {
	_Atomic uint64_t waits;                        /* for the queue */
	_Atomic uint64_t no_stream, unproved, unknown; /* launches: why they were not queued */
	_Atomic uint32_t by_thunk[THUNK_COUNT];        /* waits of passed functions */
} counts;

static void count(_Atomic uint64_t *of)
{
	atomic_fetch_add_explicit(of, 1, memory_order_relaxed);
}

static void switch_off(const char *why, const char *what)
{
	if (!atomic_exchange(&ahead_queue.is_off, true))
		log_debug("no launches ahead of a lease from here on: %s%s", why, what);
}

void ahead_bypassed(const char *name)
{
	if (!atomic_load_explicit(&ahead_queue.is_off, memory_order_relaxed))
		switch_off("nothing of ours can be put before ", name);
}

/*
 * One queue of several devices would make one's work wait for the other's lease, as a queue for each would
 * lose the order between them. A process that works on two has none.
 */
static bool is_only_device(int device)
{
	int known = atomic_load_explicit(&only_device, memory_order_relaxed), none = 0;

	if (likely(known == device + 1))
		return true;
	if (!known && atomic_compare_exchange_strong(&only_device, &none, device + 1))
		return true;
	if (atomic_load(&only_device) == device + 1)
		return true;
	switch_off("the process works on several devices", "");
	return false;
}

/* Of a newer driver a program may be linked with functions that no table of ours has. */
static bool is_driver_known(void)
{
	int version = 0;

	return real.cuDriverGetVersion && real.cuDriverGetVersion(&version) == CUDA_SUCCESS &&
	       version <= DRIVER_VERSIONS_NEWEST;
}

/* Ring and feeder, when they are first needed. */
static bool prepare(void)
{
	if (likely(atomic_load_explicit(&is_ready, memory_order_acquire)))
		return true;
	WITH_LOCK(&ahead_queue.lock);
	if (atomic_load(&is_ready))
		return true;
	if (!config_launch_ahead())
		switch_off("it is switched off", "");
	else if (!is_driver_known())
		switch_off("the driver is newer than the tables", "");
	else if (!ahead_queue_prepare() || !ahead_feed_start())
		switch_off("no memory, or no thread", "");
	atomic_store(&is_ready, !atomic_load(&ahead_queue.is_off));
	return atomic_load(&is_ready);
}

static bool is_on(void)
{
	return !atomic_load_explicit(&ahead_queue.is_off, memory_order_relaxed) &&
	       guest_is_active() && !atomic_load(&guest.captures) &&
	       !atomic_load(&guest.daemon_lost) && prepare();
}

/* ---- waiting ---- */

/* Until so many were handed over, or a moment has passed. Holds the lock, but not meanwhile. */
static void sleep_until(uint64_t handed)
{
	struct ahead_queue *q = &ahead_queue;
	uint32_t moved = atomic_load(&q->moved);

	if (handed < q->wake_at)
		q->wake_at = handed;
	sys_unlock(&q->lock);
	sys_futex_wait(&q->moved, moved, SLEEP_NS, false);
	sys_lock(&q->lock);
}

CUresult ahead_settle(void)
{
	struct ahead_queue *q = &ahead_queue;

	if (!guest_is_active() || ahead_feed_is_me())
		return CUDA_SUCCESS; /* a fork, or the end */
	WITH_LOCK(&q->lock);
	count(&counts.waits);
	for (uint64_t until = q->pushed; q->handed < until && guest_is_active();)
		sleep_until(until);
	CUresult result = (CUresult)atomic_exchange(&kept, 0);
	if (result != CUDA_SUCCESS && q->handed == q->pushed)
		atomic_store(&guest.ahead, 0);
	return result;
}

void ahead_failed(CUresult result)
{
	uint32_t none = 0;

	switch_off("a queued call failed", "");
	atomic_compare_exchange_strong(&kept, &none, (uint32_t)result);
}

bool ahead_keeps_error(void)
{
	return atomic_load(&kept) != 0;
}

/* ---- queueing ---- */

static int32_t inflight(int device)
{
	return atomic_load_explicit(&flight_devices[device].inflight, memory_order_relaxed);
}

static bool fits(uint32_t bytes, uint64_t ns, int device)
{
	struct ahead_queue *q = &ahead_queue;
	const struct region_control_device *c = guest_control_device(device);
	uint64_t most = atomic_load_explicit(&c->launch_ahead_ns, memory_order_relaxed);

	if (!ahead_queue_has_bytes(bytes))
		return false;
	return q->handed == q->pushed ||
	       (q->ns + ns <= most &&
		(int64_t)(q->pushed - q->handed) + inflight(device) < AHEAD_IN_FLIGHT);
}

/*
 * A place in the queue, waited for as long as it is full; NULL: nothing may be queued any more, or the driver
 * may be full: who launches then blocks in it, and must not be the feeder, whom others wait for. Locks it;
 * push() unlocks.
 */
static struct ahead_record *reserve(uint32_t bytes, uint64_t ns, int device)
{
	struct ahead_queue *q = &ahead_queue;

	sys_lock(&q->lock);
	while (is_on() && inflight(device) < AHEAD_IN_FLIGHT) {
		if (fits(bytes, ns, device))
			return ahead_queue_reserve(bytes);
		/* An eighth of it, so that not each record that goes wakes who waits. */
		sleep_until(q->handed + (q->pushed - q->handed + 7) / 8);
	}
	sys_unlock(&q->lock);
	return NULL;
}

static void push(struct ahead_record *r)
{
	struct ahead_queue *q = &ahead_queue;
	bool is_first = q->handed == q->pushed;

	ahead_queue_push(r);
	atomic_store(&guest.ahead, 1);
	if (is_first)
		door_shut(DOOR_ALL);
	atomic_fetch_add(&q->filled, 1);
	bool is_fed = atomic_load(&q->is_fed);
	sys_unlock(&q->lock);
	if (!is_fed)
		sys_futex_wake(&q->filled, 1);
}

/* Not queued: waits, and takes what was kept. True: that ends the call. */
static bool settle(CUresult *ret_result)
{
	CUresult result = ahead_flush();

	if (result == CUDA_SUCCESS)
		return false;
	*ret_result = result;
	return true;
}

/* ---- what a call goes to ---- */

struct target {
	CUcontext context;
	CUstream stream;
	struct flight_stream *record;
};

/* False: a stream that the feeder can't name, or of another context, or not known to be one. */
static bool find_target(const struct work *work, struct target *t)
{
	CUstream stream = work->stream;

	if (!stream)
		stream = work->streams == LEGACY ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
	if (stream == CU_STREAM_PER_THREAD)
		return false;
	t->context = real_current_context();
	t->stream = stream;
	t->record = t->context ? flight_stream_of(work) : NULL;
	return t->record && t->record->context == t->context && is_only_device(t->record->device) &&
	       proof_is_there(proof_of_handle(PROOF_STREAM, stream, NULL));
}

static uint64_t predicted_ns(const struct work *work, const struct flight_stream *s)
{
	uint64_t ns = atomic_load_explicit(&estimate_of(work)->ns, memory_order_relaxed);

	if (!ns)
		ns = atomic_load_explicit(&s->average_ns, memory_order_relaxed);
	return ns ? ns : UNKNOWN_NS;
}

static struct ahead_record *reserve_work(enum ahead_kind kind, const struct target *t,
					 const struct work *work, size_t more)
{
	uint64_t ns = predicted_ns(work, t->record);
	uint32_t bytes = (uint32_t)((sizeof(struct ahead_record) + more + 15) & ~(size_t)15);
	struct ahead_record *r = reserve(bytes, ns, t->record->device);

	if (!r)
		return NULL;
	r->kind = kind;
	r->context = t->context;
	r->stream = t->stream;
	r->ns = ns;
	r->work = *work;
	/* The feeder has no per-thread stream in mind, whatever entry point this came by. */
	r->work.streams = LEGACY;
	r->work.stream = t->stream;
	return r;
}

/* ---- kernels ---- */

/*
 * Attributes (CUlaunchAttributeID) that say how a kernel runs: clusters, start beside the kernel before it,
 * priority, memory domains, caches. Not: cooperative, events, graphs, and what is not known.
 */
static bool is_harmless(uint32_t id)
{
	static const uint8_t all[] = { 0, 1, 3, 4, 5, 6, 8, 9, 10, 11, 14, 16 };

	return memchr(all, (int)id, sizeof(all)) != NULL && id < 256;
}

static bool are_harmless(const CUlaunchConfig *config)
{
	uint32_t id;

	if (config->numAttrs > AHEAD_ATTRIBUTES_MAX || (config->numAttrs && !config->attrs))
		return false;
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		memcpy(&id, (const unsigned char *)config->attrs + (size_t)i * AHEAD_ATTRIBUTE_BYTES,
		       sizeof(id));
		if (!is_harmless(id))
			return false;
	}
	return true;
}

static bool may_use_shared(const struct ahead_kernel *k)
{
	int most = 0;

	return k->shared_bytes <= SHARED_FREE_BYTES ||
	       (real.cuFuncGetAttribute &&
		real.cuFuncGetAttribute(&most, ATTRIBUTE_MAX_DYNAMIC_SHARED, k->function) ==
			CUDA_SUCCESS &&
		most >= 0 && (unsigned int)most >= k->shared_bytes);
}

/* Parameters in one buffer: { 1: pointer, 2: size, 0 }, in any order. */
static bool read_extra(void **extra, const void **ret_buffer, size_t *ret_bytes)
{
	const void *buffer = NULL;
	size_t bytes = SIZE_MAX;

	for (int i = 0; i < 3 && extra[2 * i]; i++) {
		if (extra[2 * i] == (void *)1)
			buffer = extra[2 * i + 1];
		else if (extra[2 * i] == (void *)2 && extra[2 * i + 1])
			bytes = *(const size_t *)extra[2 * i + 1];
		else
			return false;
	}
	*ret_buffer = buffer;
	*ret_bytes = bytes;
	return buffer && bytes <= AHEAD_PARAM_BYTES_MAX;
}

static size_t attributes_bytes(const struct ahead_kernel *k)
{
	size_t bytes = k->config ? (size_t)k->config->numAttrs * AHEAD_ATTRIBUTE_BYTES : 0;

	return (bytes + 15) & ~(size_t)15;
}

struct parameters {
	struct ahead_layout layout;
	const void *buffer; /* of extra */
	size_t bytes;
};

static bool find_parameters(const struct ahead_kernel *k, struct parameters *p)
{
	p->layout.count = p->layout.bytes = 0;
	p->buffer = NULL;
	p->bytes = 0;
	if (k->params && k->extra)
		return false;
	if (k->extra)
		return read_extra(k->extra, &p->buffer, &p->bytes);
	if (k->params && !proof_layout(k->function, &p->layout))
		return false;
	p->bytes = p->layout.bytes;
	return true;
}

static void fill_kernel(struct ahead_record *r, const struct ahead_kernel *k,
			const struct parameters *p)
{
	unsigned char *data = ahead_record_data(r);

	r->kernel.function = k->function;
	memcpy(r->kernel.grid, k->grid, sizeof(k->grid));
	memcpy(r->kernel.block, k->block, sizeof(k->block));
	r->kernel.shared_bytes = k->shared_bytes;
	r->kernel.is_config = k->config != NULL;
	r->kernel.has_params = k->params != NULL;
	r->kernel.has_extra = k->extra != NULL;
	r->kernel.attributes = k->config ? (uint16_t)k->config->numAttrs : 0;
	r->kernel.params_count = p->layout.count;
	r->kernel.params_bytes = (uint16_t)p->bytes;
	memcpy(r->kernel.offset, p->layout.offset, p->layout.count * sizeof(p->layout.offset[0]));
	if (r->kernel.attributes)
		memcpy(data, k->config->attrs, (size_t)r->kernel.attributes * AHEAD_ATTRIBUTE_BYTES);
	data += attributes_bytes(k);
	if (p->buffer)
		memcpy(data, p->buffer, p->bytes);
	for (unsigned int i = 0; i < p->layout.count; i++)
		memcpy(data + p->layout.offset[i], k->params[i], p->layout.size[i]);
}

bool ahead_launch(const struct work *work, const struct ahead_kernel *k, CUresult *ret_result)
{
	struct parameters p;
	struct target t;
	struct ahead_record *r = NULL;

	if (is_on() && (!k->config || are_harmless(k->config))) {
		bool has_target = find_target(work, &t);
		uint64_t proof = has_target ? proof_of_kernel(k, t.context) : 0;
		if (!has_target) {
			count(&counts.no_stream);
		} else if (!proof_is_there(proof) || !may_use_shared(k)) {
			count(&counts.unproved);
		} else if (find_parameters(k, &p)) {
			r = reserve_work(AHEAD_KERNEL, &t, work, attributes_bytes(k) + p.bytes);
		} else {
			proof_remove(proof); /* with it the layout is asked for again */
			count(&counts.unknown);
		}
	}
	if (!r)
		return settle(ret_result);
	fill_kernel(r, k, &p);
	push(r);
	*ret_result = CUDA_SUCCESS;
	return true;
}

void ahead_prove_launch(const struct work *work, const struct ahead_kernel *k)
{
	CUcontext context = real_current_context();

	if (atomic_load_explicit(&ahead_queue.is_off, memory_order_relaxed) || !context ||
	    (k->config && !are_harmless(k->config)))
		return;
	uint64_t proof = proof_of_kernel(k, context);
	if (likely(proof_is_there(proof))) {
		ahead_prove_stream(work);
		return;
	}
	if (k->params)
		proof_learn_layout(k->function);
	proof_add(proof);
	ahead_prove_stream(work);
}

void ahead_prove_stream(const struct work *work)
{
	const struct flight_stream *s = flight_stream_of(work);
	CUstream stream = work->stream;

	if (!s || !is_only_device(s->device))
		return;
	if (!stream)
		stream = work->streams == LEGACY ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
	uint64_t proof = proof_of_handle(PROOF_STREAM, stream, NULL);
	if (!proof_is_there(proof))
		proof_add(proof);
}

/* ---- memory ---- */

static bool is_device_range(CUdeviceptr ptr, size_t bytes)
{
	CUdeviceptr base;
	size_t size;

	return real.cuMemGetAddressRange_v2 &&
	       real.cuMemGetAddressRange_v2(&base, &size, ptr) == CUDA_SUCCESS && ptr >= base &&
	       ptr - base <= size && bytes <= size - (ptr - base);
}

bool ahead_set(const struct work *work, CUdeviceptr dst, uint32_t value, unsigned int element_bytes,
	       size_t count, CUresult *ret_result)
{
	struct ahead_record *r = NULL;
	struct target t;

	if (is_on() && count && count <= SIZE_MAX / element_bytes && dst % element_bytes == 0 &&
	    find_target(work, &t) && is_device_range(dst, count * element_bytes))
		r = reserve_work(AHEAD_SET, &t, work, 0);
	if (!r)
		return settle(ret_result);
	r->set.dst = dst;
	r->set.value = value;
	r->set.element_bytes = element_bytes;
	r->set.count = count;
	push(r);
	*ret_result = CUDA_SUCCESS;
	return true;
}

bool ahead_copy(const struct work *work, CUdeviceptr dst, CUdeviceptr src, size_t bytes,
		CUresult *ret_result)
{
	struct ahead_record *r = NULL;
	struct target t;

	if (is_on() && bytes && find_target(work, &t) && is_device_range(dst, bytes) &&
	    is_device_range(src, bytes))
		r = reserve_work(AHEAD_COPY, &t, work, 0);
	if (!r)
		return settle(ret_result);
	r->copy.dst = dst;
	r->copy.src = src;
	r->copy.bytes = bytes;
	push(r);
	*ret_result = CUDA_SUCCESS;
	return true;
}

/* ---- events ---- */

struct event_call {
	enum ahead_kind kind;
	CUevent event;
	CUstream stream;
	enum stream_meaning streams;
	bool has_flags;
};

static bool push_event(const struct event_call *c, const struct target *t)
{
	struct ahead_record *r = reserve(sizeof(struct ahead_record), 0, t->record->device);

	if (!r)
		return false;
	r->kind = c->kind;
	r->context = t->context;
	r->stream = t->stream;
	r->ns = 0;
	r->event = c->event;
	push(r);
	return true;
}

/* Queued; or made here, so that its success is seen. True: that was all of it. */
static bool meet_event(const struct event_call *c,
		       CUresult (*call)(const uintptr_t argument[6], void *),
		       const uintptr_t argument[6], void *real_function, CUresult *ret_result)
{
	const struct work work = { .kind = WORK_IS_KERNEL,
				   .streams = c->streams,
				   .stream = c->stream };
	enum proof_kind kind = c->kind == AHEAD_RECORD ? PROOF_RECORD : PROOF_WAIT;
	CUcontext context = real_current_context();
	struct target t;

	if (!c->has_flags && !atomic_load(&shares_event) && context && is_on() &&
	    find_target(&work, &t) && proof_is_there(proof_of_handle(kind, c->event, context)) &&
	    push_event(c, &t)) {
		*ret_result = CUDA_SUCCESS;
		return true;
	}
	if (settle(ret_result))
		return true;
	*ret_result = call(argument, real_function);
	if (*ret_result == CUDA_SUCCESS && context && !atomic_load(&guest.captures)) {
		proof_add(proof_of_handle(kind, c->event, context));
		ahead_prove_stream(&work);
	}
	return true;
}

static CUresult call_record(const uintptr_t a[6], void *real_function)
{
	return ((CUresult(*)(CUevent, CUstream))real_function)((CUevent)a[0], (CUstream)a[1]);
}

static CUresult call_record_flags(const uintptr_t a[6], void *real_function)
{
	return ((CUresult(*)(CUevent, CUstream, unsigned int))real_function)(
		(CUevent)a[0], (CUstream)a[1], (unsigned int)a[2]);
}

static CUresult call_wait(const uintptr_t a[6], void *real_function)
{
	return ((CUresult(*)(CUstream, CUevent, unsigned int))real_function)(
		(CUstream)a[0], (CUevent)a[1], (unsigned int)a[2]);
}

static bool meet_record(const uintptr_t a[6], enum stream_meaning streams, bool with_flags,
			void *real_function, CUresult *ret_result)
{
	const struct event_call c = { AHEAD_RECORD, (CUevent)a[0], (CUstream)a[1], streams,
				      with_flags && (unsigned int)a[2] };

	return meet_event(&c, with_flags ? call_record_flags : call_record, a, real_function,
			  ret_result);
}

static bool meet_wait(const uintptr_t a[6], enum stream_meaning streams, void *real_function,
		      CUresult *ret_result)
{
	const struct event_call c = { AHEAD_WAIT, (CUevent)a[1], (CUstream)a[0], streams,
				      (unsigned int)a[2] != 0 };

	return meet_event(&c, call_wait, a, real_function, ret_result);
}

/*
 * What is asked of an event, or of a stream that is not a default one, concerns its own work alone. Nothing
 * of that queued: the driver can answer. Else a query is told "not ready", and a wait waits for the queue.
 */
struct question {
	CUevent event[2]; /* NULL: none */
	CUstream stream;  /* NULL: none */
};

static bool is_queued(const struct question *q)
{
	CUcontext context = q->stream ? real_current_context() : NULL;

	if (!guest_is_active())
		return false;
	/* Who asks again and again would keep the lock from the feeder, and wait for it for ever. */
	for (int i = 0; i < 50 && atomic_load(&ahead_queue.feeder_locks); i++)
		sys_sleep_ns(NS_PER_US);
	WITH_LOCK(&ahead_queue.lock);
	for (int i = 0; i < 2; i++)
		if (q->event[i] && ahead_queue_records(q->event[i]))
			return true;
	return q->stream && ahead_queue_uses(q->stream, context);
}

static bool is_default(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

static bool meet_question(const struct question *q, bool waits, CUresult *ret_result)
{
	bool is_told = !atomic_load(&guest.captures) && !ahead_keeps_error();

	if (!is_told || (!q->event[0] && is_default(q->stream)))
		return settle(ret_result);
	if (!is_queued(q))
		return false;
	if (waits)
		return settle(ret_result);
	*ret_result = CUDA_ERROR_NOT_READY;
	return true;
}

static bool meet_event_question(uintptr_t event, bool waits, CUresult *ret_result)
{
	const struct question q = { .event = { (CUevent)event } };

	return meet_question(&q, waits, ret_result);
}

static bool meet_stream_question(uintptr_t stream, bool waits, CUresult *ret_result)
{
	const struct question q = { .stream = (CUstream)stream };

	return meet_question(&q, waits, ret_result);
}

static bool meet_elapsed(const uintptr_t a[6], CUresult *ret_result)
{
	const struct question q = { .event = { (CUevent)a[1], (CUevent)a[2] } };

	return meet_question(&q, false, ret_result);
}

/* What is set already changes nothing for what is queued: libraries say it before each launch. */
static bool is_set(CUfunction function, CUfunction_attribute attribute, int value)
{
	int now;

	return real.cuFuncGetAttribute &&
	       real.cuFuncGetAttribute(&now, attribute, function) == CUDA_SUCCESS && now == value;
}

static bool is_set_of_kernel(CUkernel kernel, CUfunction_attribute attribute, int value,
			     CUdevice device)
{
	int now;

	return real.cuKernelGetAttribute &&
	       real.cuKernelGetAttribute(&now, attribute, kernel, device) == CUDA_SUCCESS &&
	       now == value;
}

bool ahead_meet(uint32_t thunk, const uintptr_t a[6], CUresult *ret_result)
{
	void *real_function = allot_thunk_real[thunk];

	switch (thunk) {
	case THUNK_cuIpcGetEventHandle:
	case THUNK_cuIpcOpenEventHandle: atomic_store(&shares_event, true); break;
	default: break;
	}
	if (!ahead_is_pending())
		return false;
	switch (thunk) {
	case THUNK_cuEventRecord: return meet_record(a, LEGACY, false, real_function, ret_result);
	case THUNK_cuEventRecord_ptsz:
		return meet_record(a, PER_THREAD, false, real_function, ret_result);
	case THUNK_cuEventRecordWithFlags:
		return meet_record(a, LEGACY, true, real_function, ret_result);
	case THUNK_cuEventRecordWithFlags_ptsz:
		return meet_record(a, PER_THREAD, true, real_function, ret_result);
	case THUNK_cuStreamWaitEvent: return meet_wait(a, LEGACY, real_function, ret_result);
	case THUNK_cuStreamWaitEvent_ptsz:
		return meet_wait(a, PER_THREAD, real_function, ret_result);
	case THUNK_cuEventQuery: return meet_event_question(a[0], false, ret_result);
	case THUNK_cuEventSynchronize: return meet_event_question(a[0], true, ret_result);
	case THUNK_cuEventElapsedTime:
	case THUNK_cuEventElapsedTime_v2: return meet_elapsed(a, ret_result);
	case THUNK_cuStreamQuery:
	case THUNK_cuStreamQuery_ptsz: return meet_stream_question(a[0], false, ret_result);
	case THUNK_cuStreamSynchronize:
	case THUNK_cuStreamSynchronize_ptsz: return meet_stream_question(a[0], true, ret_result);
	case THUNK_cuFuncSetAttribute:
		return !is_set((CUfunction)a[0], (CUfunction_attribute)a[1], (int)a[2]) &&
		       settle(ret_result);
	case THUNK_cuKernelSetAttribute:
		return !is_set_of_kernel((CUkernel)a[2], (CUfunction_attribute)a[0], (int)a[1],
					 (CUdevice)a[3]) &&
		       settle(ret_result);
	default:
		atomic_fetch_add_explicit(&counts.by_thunk[thunk], 1, memory_order_relaxed);
		return settle(ret_result);
	}
}

/* ---- ends ---- */

void ahead_log(void)
{
#define THUNK_NAME(symbol, kind, number) #symbol,
	static const char names[][64] = { DRIVER_THUNKS(THUNK_NAME) };
	uint32_t most = 0;

	if (!atomic_load(&is_ready))
		return;
	for (uint32_t i = 1; i < THUNK_COUNT; i++)
		if (atomic_load(&counts.by_thunk[i]) > atomic_load(&counts.by_thunk[most]))
			most = i;
	log_debug(
		"calls queued ahead of a lease: %llu; waits for them: %llu, of passed functions %s "
		"the "
		"most often (%u); kernels not queued: %llu for their stream, %llu not seen before, "
		"%llu of unknown parameters",
		(unsigned long long)ahead_queue.pushed, (unsigned long long)counts.waits,
		names[most], atomic_load(&counts.by_thunk[most]),
		(unsigned long long)counts.no_stream, (unsigned long long)counts.unproved,
		(unsigned long long)counts.unknown);
}

void ahead_reset(void)
{
	struct ahead_queue *q = &ahead_queue;
	unsigned char *ring = q->ring;
	bool is_off = atomic_load(&q->is_off);

	memset(q, 0, sizeof(*q));
	q->ring = ring;
	atomic_store(&q->is_off, is_off);
	q->wake_at = UINT64_MAX;
	atomic_store(&is_ready, false);
	atomic_store(&kept, 0);
	atomic_store(&only_device, 0);
	atomic_store(&guest.ahead, 0);
	proof_reset();
	ahead_feed_reset();
}
