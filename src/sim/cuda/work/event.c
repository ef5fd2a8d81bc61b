/* Events. A completed event is remembered, so that polling it needs no request to the server. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

static bool is_event(CUevent event)
{
	return event && event->magic == MAGIC_EVENT;
}

static CUevent event_new(CUcontext ctx, unsigned int flags)
{
	CUevent event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->magic = MAGIC_EVENT;
	event->id = sim_id_get(SIM_ID_EVENT);
	event->ctx = ctx;
	event->flags = flags;
	return event;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	CUcontext ctx;

	SIM_ENTER(cuEventCreate);
	SIM_TRY(sim_need_context(&ctx));
	/* An event for other processes cannot be timed. */
	SIM_FAIL_IF(!event || flags > 7 || (flags & 6) == CU_EVENT_INTERPROCESS,
		    CUDA_ERROR_INVALID_VALUE);
	*event = event_new(ctx, flags);
	SIM_FAIL_IF(!*event, CUDA_ERROR_OUT_OF_MEMORY);
	return sim_post((struct sim_request_msg){ .type = SIM_EVENT_NEW, .id = (*event)->id });
}

CUresult cuEventDestroy_v2(CUevent event)
{
	SIM_ENTER(cuEventDestroy_v2);
	SIM_FAIL_IF(!is_event(event), CUDA_ERROR_INVALID_HANDLE);
	sim_post((struct sim_request_msg){ .type = SIM_EVENT_FREE, .id = event->id });
	sim_id_put(SIM_ID_EVENT, event->id);
	sim_free_handle(event);
	return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream handle, bool ptds)
{
	CUstream stream;
	CUresult r;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(!is_event(event), CUDA_ERROR_INVALID_HANDLE);
	SIM_FAIL_IF(!event->imported && event->ctx != stream->ctx, CUDA_ERROR_INVALID_HANDLE);
	if (atomic_load_explicit(&sim.captures, memory_order_relaxed) &&
	    sim_capture_record(stream, event, &r))
		return r;
	SIM_WITH(&sim_event_lock);
	event->records++;
	event->done = false;
	event->not_before_ns = 0;
	event->capture_id = 0;
	return sim_post((struct sim_request_msg){ .type = SIM_EVENT_RECORD,
						  .card = sim_context_device(stream->ctx)->card,
						  .id = event->id,
						  .arg = { stream->id } });
}

SIM_TWINS(cuEventRecord, _ptsz, (CUevent event, CUstream stream),
	  return record(event, stream, ptds);)
SIM_TWINS(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned int flags),
	  return record(event, stream, ptds);)

/* Returns CUDA_SUCCESS if the event is done. With `wait`, first waits until it is. */
static CUresult ask(CUevent event, bool wait)
{
	struct sim_request_msg m = { .type = wait ? SIM_EVENT_SYNC : SIM_EVENT_QUERY,
				     .card = sim_context_device(event->ctx)->card,
				     .id = event->id };
	uint64_t val[5], records;
	CUresult r = CUDA_ERROR_NOT_READY;

	pthread_mutex_lock(&sim_event_lock);
	records = event->records;
	if (event->capture_id)
		r = CUDA_ERROR_CAPTURED_EVENT;
	else if (event->done || (!records && !event->imported))
		r = CUDA_SUCCESS;
	else if (wait || event->not_before_ns <= sim_clock_ns())
		/* not known yet: ask the server */
		r = CUDA_ERROR_UNKNOWN;
	pthread_mutex_unlock(&sim_event_lock);
	if (r != CUDA_ERROR_UNKNOWN)
		return r;
	SIM_TRY(sim_call(m, val));
	SIM_WITH(&sim_event_lock);
	/* Keep no answer for an event that other processes may record. */
	if (records == event->records) {
		bool lasts = !(event->flags & CU_EVENT_INTERPROCESS);

		event->done = val[0] && lasts;
		event->at_ns = val[1];
		event->not_before_ns = !val[0] && lasts && !sim.link.clock_off ? val[2] : 0;
	}
	return val[0] ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventQuery(CUevent event)
{
	SIM_ENTER(cuEventQuery);
	SIM_FAIL_IF(!is_event(event), CUDA_ERROR_INVALID_HANDLE);
	SIM_UNSAFE();
	return ask(event, false);
}

CUresult cuEventSynchronize(CUevent event)
{
	SIM_ENTER(cuEventSynchronize);
	SIM_FAIL_IF(!is_event(event), CUDA_ERROR_INVALID_HANDLE);
	SIM_UNSAFE();
	SIM_TRY(ask(event, true));
	sim_pools_trim_after_sync(event->ctx->dev);
	return CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	SIM_FAIL_IF(!ms, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!is_event(start) || !is_event(end) || !start->records || !end->records ||
			    ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING),
		    CUDA_ERROR_INVALID_HANDLE);
	SIM_UNSAFE();
	SIM_TRY(ask(start, false));
	SIM_TRY(ask(end, false));
	*ms = (float)((double)(int64_t)(end->at_ns - start->at_ns) / 1e6);
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuEventElapsedTime, (float *ms, CUevent start, CUevent end), elapsed(ms, start, end))
SIM_FUNCTION(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end), elapsed(ms, start, end))

static CUresult wait_event(CUstream handle, bool ptds, CUevent event)
{
	CUstream stream;
	CUresult r;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(!is_event(event), CUDA_ERROR_INVALID_HANDLE);
	if (atomic_load_explicit(&sim.captures, memory_order_relaxed) &&
	    sim_capture_wait_event(stream, event, &r))
		return r;
	if (!event->records && !event->imported)
		return CUDA_SUCCESS;
	return sim_post((struct sim_request_msg){ .type = SIM_EVENT_AWAIT,
						  .card = sim_context_device(stream->ctx)->card,
						  .id = event->id,
						  .arg = { stream->id } });
}

SIM_TWINS(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned int flags),
	  return wait_event(stream, ptds, event);)

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	uint64_t val[5];

	SIM_ENTER(cuIpcGetEventHandle);
	SIM_FAIL_IF(!handle || !is_event(event) || !(event->flags & CU_EVENT_INTERPROCESS),
		    CUDA_ERROR_INVALID_HANDLE);
	SIM_TRY(sim_call((struct sim_request_msg){ .type = SIM_EVENT_NAME, .id = event->id }, val));
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->reserved, &val[0], sizeof(val[0]));
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	struct sim_request_msg m = { .type = SIM_EVENT_OPEN };
	CUcontext ctx;

	SIM_ENTER(cuIpcOpenEventHandle);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!event, CUDA_ERROR_INVALID_VALUE);
	*event = event_new(ctx, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	SIM_FAIL_IF(!*event, CUDA_ERROR_OUT_OF_MEMORY);
	(*event)->imported = true;
	m.id = (*event)->id;
	memcpy(&m.arg[0], handle.reserved, sizeof(m.arg[0]));
	CUresult r = sim_call(m, NULL);
	if (r != CUDA_SUCCESS) {
		sim_id_put(SIM_ID_EVENT, m.id);
		free(*event);
	}
	return r;
}
