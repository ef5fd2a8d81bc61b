/*
 * Passed functions that meet the queue (thunk.h): records of events and waits for them are queued like work,
 * questions about an event or a stream are answered by what is queued of it, all others wait.
 */
#include "interpose/ahead_inside.h"
#include "interpose/ahead_feed.h"
#include "interpose/ahead_proof.h"
#include "interpose/flight.h"
#include "interpose/real.h"
#include "interpose/rest.h"

static _Atomic bool shares_event; /* other processes may know one */

/* By thunk; for the log. */
#define NAME(symbol, kind, number) #symbol,
static const char names[][64] = { DRIVER_THUNKS(NAME) };

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
	struct ahead_record *r = ahead_reserve_small();

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
	if (ahead_settle_call(c->kind == AHEAD_RECORD ? "cuEventRecord" : "cuStreamWaitEvent",
			      ret_result))
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
	const char *who;
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
		return ahead_settle_call(q->who, ret_result);
	if (!is_queued(q))
		return false;
	if (waits)
		return ahead_settle_call(q->who, ret_result);
	*ret_result = CUDA_ERROR_NOT_READY;
	return true;
}

static bool meet_event_question(uint32_t thunk, uintptr_t event, bool waits, CUresult *ret_result)
{
	const struct question q = { names[thunk], .event = { (CUevent)event } };

	return meet_question(&q, waits, ret_result);
}

static bool meet_stream_question(uint32_t thunk, uintptr_t stream, bool waits, CUresult *ret_result)
{
	const struct question q = { names[thunk], .stream = (CUstream)stream };

	return meet_question(&q, waits, ret_result);
}

static bool meet_elapsed(uint32_t thunk, const uintptr_t a[6], CUresult *ret_result)
{
	const struct question q = { names[thunk], .event = { (CUevent)a[1], (CUevent)a[2] } };

	return meet_question(&q, false, ret_result);
}

/* ---- how events begin and end ---- */

#define EVENT_INTERPROCESS 4 /* CU_EVENT_INTERPROCESS */

typedef CUresult create_function(CUevent *event, unsigned int flags);
typedef CUresult destroy_function(CUevent event);

/* An event of the current context can be recorded there, and waited for: libraries make one for each use. */
static bool meet_create(const uintptr_t a[6], void *real_function, CUresult *ret_result)
{
	CUevent *event = (CUevent *)a[0];
	unsigned int flags = (unsigned int)a[1];
	CUcontext context;

	if (!ahead_is_used())
		return false;
	*ret_result = ((create_function *)real_function)(event, flags);
	context = *ret_result == CUDA_SUCCESS ? real_current_context() : NULL;
	if (context && !(flags & EVENT_INTERPROCESS)) {
		proof_add(proof_of_handle(PROOF_RECORD, *event, context));
		proof_add(proof_of_handle(PROOF_WAIT, *event, context));
	}
	return true;
}

static bool may_be_queued(CUevent event)
{
	if (!guest_is_active())
		return false;
	WITH_LOCK(&ahead_queue.lock);
	return ahead_queue_may_know(event);
}

/* Behind its last use, if that is queued; its handle is nobody else's until then. */
static bool meet_destroy(const uintptr_t a[6], const char *who, CUresult *ret_result)
{
	CUevent event = (CUevent)a[0];

	if (atomic_load(&guest.captures) || ahead_keeps_error())
		return ahead_settle_call(who, ret_result);
	if (!may_be_queued(event))
		return false;
	struct ahead_record *r = ahead_is_on() ? ahead_reserve_small() : NULL;
	if (!r)
		return ahead_settle_call(who, ret_result);
	r->kind = AHEAD_END;
	r->context = NULL;
	r->stream = NULL;
	r->ns = 0;
	r->event = event;
	ahead_push(r);
	*ret_result = CUDA_SUCCESS;
	return true;
}

CUresult ahead_end_event(CUevent event)
{
	destroy_function *destroy = (destroy_function *)allot_thunk_real[THUNK_cuEventDestroy_v2];

	return destroy ? destroy(event) : CUDA_SUCCESS;
}

/* ---- waits for all that was launched ---- */

static CUresult wait_for_stream(uintptr_t stream, enum stream_meaning streams, void *real_function)
{
	CUresult result = ((CUresult(*)(CUstream))real_function)((CUstream)stream);

	if (result == CUDA_SUCCESS)
		rest_after_stream((CUstream)stream, streams);
	return result;
}

static CUresult wait_for_context(uintptr_t context, void *real_function)
{
	CUresult result = ((CUresult(*)(CUcontext))real_function)((CUcontext)context);

	if (result == CUDA_SUCCESS)
		rest_after_all();
	return result;
}

/* Made here, so that its end is seen. */
static CUresult wait(uint32_t thunk, uintptr_t argument, void *real_function)
{
	switch (thunk) {
	case THUNK_cuStreamSynchronize: return wait_for_stream(argument, LEGACY, real_function);
	case THUNK_cuStreamSynchronize_ptsz:
		return wait_for_stream(argument, PER_THREAD, real_function);
	/* The first form takes no argument, and looks at none. */
	default: return wait_for_context(argument, real_function);
	}
}

static bool meet_wait_for_all(uint32_t thunk, const uintptr_t a[6], void *real_function,
			      CUresult *ret_result)
{
	bool is_stream = thunk == THUNK_cuStreamSynchronize ||
			 thunk == THUNK_cuStreamSynchronize_ptsz;

	if (ahead_is_pending() && (is_stream ? meet_stream_question(thunk, a[0], true, ret_result)
					     : ahead_settle_call(names[thunk], ret_result)))
		return true;
	*ret_result = wait(thunk, a[0], real_function);
	return true;
}

bool ahead_meet(uint32_t thunk, const uintptr_t a[6], CUresult *ret_result)
{
	void *real_function = allot_thunk_real[thunk];

	/* What the queue must know of though nothing may be in it. */
	switch (thunk) {
	case THUNK_cuIpcGetEventHandle:
	case THUNK_cuIpcOpenEventHandle: atomic_store(&shares_event, true); break;
	case THUNK_cuEventCreate: return meet_create(a, real_function, ret_result);
	case THUNK_cuCtxSynchronize:
	case THUNK_cuCtxSynchronize_v2:
	case THUNK_cuStreamSynchronize:
	case THUNK_cuStreamSynchronize_ptsz:
		return meet_wait_for_all(thunk, a, real_function, ret_result);
	case THUNK_cuFuncSetAttribute:
	case THUNK_cuKernelSetAttribute: return ahead_meet_attribute(thunk, a, ret_result);
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
	case THUNK_cuEventQuery: return meet_event_question(thunk, a[0], false, ret_result);
	case THUNK_cuEventSynchronize: return meet_event_question(thunk, a[0], true, ret_result);
	case THUNK_cuEventElapsedTime:
	case THUNK_cuEventElapsedTime_v2: return meet_elapsed(thunk, a, ret_result);
	case THUNK_cuStreamQuery:
	case THUNK_cuStreamQuery_ptsz: return meet_stream_question(thunk, a[0], false, ret_result);
	case THUNK_cuFuncGetAttribute:
	case THUNK_cuKernelGetAttribute: return ahead_meet_attribute(thunk, a, ret_result);
	case THUNK_cuEventDestroy_v2: return meet_destroy(a, names[thunk], ret_result);
	default: return ahead_settle_call(names[thunk], ret_result);
	}
}
