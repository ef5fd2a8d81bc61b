/*
 * Passed functions that meet the queue (thunk.h): records of events and waits for them are queued like work,
 * questions about an event or a stream are answered by what is queued of it, all others wait.
 */
#include "interpose/ahead_inside.h"
#include "interpose/ahead_feed.h"
#include "interpose/ahead_proof.h"
#include "interpose/flight.h"
#include "interpose/real.h"

static _Atomic bool shares_event; /* other processes may know one */

/* ---- events ---- */

struct event_call {
	enum ahead_kind kind;
	CUevent event;
	CUstream stream;
	enum stream_meaning streams;
	bool has_flags;
};

static bool push_event(const struct event_call *c, const struct ahead_target *t)
{
	struct ahead_record *r = ahead_reserve(sizeof(struct ahead_record), 0, t->record->device);

	if (!r)
		return false;
	r->kind = c->kind;
	r->context = t->context;
	r->stream = t->stream;
	r->ns = 0;
	r->event = c->event;
	ahead_push(r);
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
	struct ahead_target t;

	if (!c->has_flags && !atomic_load(&shares_event) && context && ahead_is_on() &&
	    ahead_find_target(&work, &t) &&
	    proof_is_there(proof_of_handle(kind, c->event, context)) && push_event(c, &t)) {
		*ret_result = CUDA_SUCCESS;
		return true;
	}
	if (ahead_settle_call(ret_result))
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
		return ahead_settle_call(ret_result);
	if (!is_queued(q))
		return false;
	if (waits)
		return ahead_settle_call(ret_result);
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
		       ahead_settle_call(ret_result);
	case THUNK_cuKernelSetAttribute:
		return !is_set_of_kernel((CUkernel)a[2], (CUfunction_attribute)a[0], (int)a[1],
					 (CUdevice)a[3]) &&
		       ahead_settle_call(ret_result);
	default:
		atomic_fetch_add_explicit(&ahead_counts.by_thunk[thunk], 1, memory_order_relaxed);
		return ahead_settle_call(ret_result);
	}
}
