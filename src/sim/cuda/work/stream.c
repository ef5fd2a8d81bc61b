#include <stdlib.h>

#include "sim/cuda/sim.h"

CUstream sim_stream_new(CUcontext ctx, unsigned int flags, int priority, uint32_t wire_flags)
{
	CUstream stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->magic = MAGIC_STREAM;
	stream->id = sim_id_get(SIM_ID_STREAM);
	stream->ctx = ctx;
	stream->flags = flags;
	stream->priority = priority;
	if (flags & CU_STREAM_NON_BLOCKING)
		wire_flags |= SIM_STREAM_NONBLOCKING;
	sim_post((struct sim_request_msg){ .type = SIM_STREAM_NEW,
					   .card = sim_context_device(ctx)->card,
					   .id = stream->id,
					   .arg = { ctx->id, wire_flags, sim_space_limit(ctx) } });
	stream->next = ctx->streams;
	ctx->streams = stream;
	return stream;
}

/* Call with sim.lock held. */
void sim_stream_free(CUstream stream)
{
	CUstream *at = &stream->ctx->streams;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	sim_capture_stream_gone(stream);
	sim_post((struct sim_request_msg){ .type = SIM_STREAM_FREE,
					   .card = sim_context_device(stream->ctx)->card,
					   .id = stream->id });
	sim_id_put(SIM_ID_STREAM, stream->id);
	sim_free_handle(stream);
}

/* Returns this thread's per-thread default stream in ctx, made at the first call. */
static CUresult per_thread(CUcontext ctx, CUstream *ret_stream)
{
	static _Thread_local struct {
		CUcontext ctx;
		uint32_t id;
		CUstream stream;
	} last;
	CUstream s;

	if (last.ctx == ctx && last.id == ctx->id) {
		*ret_stream = last.stream;
		return CUDA_SUCCESS;
	}
	SIM_WITH_LOCK();
	for (s = ctx->streams; s; s = s->next)
		if (s->per_thread && pthread_equal(s->thread, pthread_self()))
			break;
	if (!s && (s = sim_stream_new(ctx, 0, 0, 0))) {
		s->per_thread = true;
		s->thread = pthread_self();
	}
	SIM_FAIL_IF(!s, CUDA_ERROR_OUT_OF_MEMORY);
	last.ctx = ctx;
	last.id = ctx->id;
	last.stream = s;
	*ret_stream = s;
	return CUDA_SUCCESS;
}

CUresult sim_stream(CUstream handle, bool ptds, CUstream *ret_stream)
{
	CUcontext ctx;

	if ((uintptr_t)handle > 2) {
		SIM_FAIL_IF(handle->magic != MAGIC_STREAM, CUDA_ERROR_INVALID_HANDLE);
		*ret_stream = handle;
		return CUDA_SUCCESS;
	}
	SIM_TRY(sim_need_context(&ctx));
	if (handle == CU_STREAM_PER_THREAD || (!handle && ptds))
		return per_thread(ctx, ret_stream);
	*ret_stream = ctx->legacy;
	return CUDA_SUCCESS;
}

CUresult sim_run_step(CUstream stream, const struct sim_step *step, uint32_t launches)
{
	struct sim_request_msg m = { .type = SIM_WORK,
				     .card = sim_context_device(stream->ctx)->card,
				     .id = stream->id,
				     .arg = { 0, launches, 0, step->way } };

	sim_space_fit(stream, step, &m.arg[0], &m.arg[2]);
	switch (step->kind) {
	case STEP_KERNEL: return (CUresult)link_post_work(&sim.link, m, launches);
	case STEP_COPY:
	case STEP_SET: m.arg[1] = 0; return sim_post(m);
	case STEP_EMPTY: return CUDA_SUCCESS;
	default: return sim_host_post(stream, step);
	}
}

CUresult sim_submit(CUstream stream, const struct sim_step *step)
{
	CUresult r;

	if (atomic_load_explicit(&sim.captures, memory_order_relaxed) &&
	    sim_capture_step(stream, step, &r))
		return r;
	return sim_run_step(stream, step, 1);
}

CUresult sim_stream_wait(CUstream stream)
{
	CUdevice dev = stream->ctx->dev;

	SIM_TRY(sim_call((struct sim_request_msg){ .type = SIM_STREAM_SYNC,
						   .card = sim_context_device(stream->ctx)->card,
						   .id = stream->id },
			 NULL));
	sim_pools_trim_after_sync(dev);
	return CUDA_SUCCESS;
}

CUresult sim_context_wait(CUcontext ctx)
{
	CUresult r = sim_call((struct sim_request_msg){ .type = SIM_CTX_SYNC,
							.card = sim_context_device(ctx)->card,
							.arg = { ctx->id } },
			      NULL);
	if (r == CUDA_SUCCESS)
		sim_pools_trim_after_sync(ctx->dev);
	return r;
}

static CUresult create(CUstream *stream, unsigned int flags, int priority)
{
	CUcontext ctx;

	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!stream || flags > CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	*stream = sim_stream_new(ctx, flags, SIM_MAX(-5, SIM_MIN(0, priority)), 0);
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_FUNCTION(cuStreamCreate, (CUstream * stream, unsigned int flags), create(stream, flags, 0))
SIM_FUNCTION(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),
	     create(stream, flags, priority))

CUresult cuStreamDestroy_v2(CUstream stream)
{
	SIM_ENTER(cuStreamDestroy_v2);
	SIM_FAIL_IF((uintptr_t)stream <= 2 || stream->magic != MAGIC_STREAM || stream->legacy,
		    CUDA_ERROR_INVALID_HANDLE);
	SIM_WITH_LOCK();
	sim_stream_free(stream);
	return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream handle, bool ptds)
{
	CUstream stream;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_TRY(sim_capture_forbids_wait(stream));
	return sim_stream_wait(stream);
}

SIM_TWINS(cuStreamSynchronize, _ptsz, (CUstream stream), return synchronize(stream, ptds);)

static CUresult query(CUstream handle, bool ptds)
{
	CUstream stream;
	uint64_t val[5];

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_TRY(sim_capture_forbids_wait(stream));
	CUresult r = sim_call((struct sim_request_msg){ .type = SIM_STREAM_QUERY,
							.card = sim_context_device(stream->ctx)->card,
							.id = stream->id },
			      val);
	return r != CUDA_SUCCESS ? r : val[0] ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_TWINS(cuStreamQuery, _ptsz, (CUstream stream), return query(stream, ptds);)

static CUresult get_ctx(CUstream handle, bool ptds, CUcontext *ctx)
{
	CUstream stream;

	SIM_FAIL_IF(!ctx, CUDA_ERROR_INVALID_VALUE);
	SIM_TRY(sim_stream(handle, ptds, &stream));
	*ctx = stream->ctx;
	return CUDA_SUCCESS;
}

SIM_TWINS(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext *ctx),
	  return get_ctx(stream, ptds, ctx);)
SIM_TWINS(cuStreamGetCtx_v2, _ptsz, (CUstream stream, CUcontext *ctx, CUgreenCtx *green),
	  SIM_TRY(get_ctx(stream, ptds, ctx));
	  if (green) *green = NULL; return CUDA_SUCCESS;)
SIM_TWINS(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice *dev),
	  CUresult r = sim_stream(stream, ptds, &stream);
	  if (r == CUDA_SUCCESS) *dev = stream->ctx->dev; return r;)
SIM_TWINS(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned int *flags),
	  CUresult r = sim_stream(stream, ptds, &stream);
	  if (r == CUDA_SUCCESS) *flags = stream->flags; return r;)
SIM_TWINS(cuStreamGetPriority, _ptsz, (CUstream stream, int *priority),
	  CUresult r = sim_stream(stream, ptds, &stream);
	  if (r == CUDA_SUCCESS) *priority = stream->priority; return r;)
SIM_TWINS(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id),
	  CUresult r = sim_stream(stream, ptds, &stream);
	  if (r == CUDA_SUCCESS) *id = stream->id; return r;)
SIM_TWINS(cuStreamCopyAttributes, _ptsz, (CUstream dst, CUstream src),
	  return sim_stream(dst, ptds, &dst);)
SIM_TWINS(cuStreamGetAttribute, _ptsz, (CUstream stream, CUstreamAttrID attr, void *value),
	  CUresult r = sim_stream(stream, ptds, &stream);
	  return r == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : r;)
SIM_TWINS(cuStreamSetAttribute, _ptsz, (CUstream stream, CUstreamAttrID attr, const void *value),
	  return sim_stream(stream, ptds, &stream);)
SIM_TWINS(cuStreamAttachMemAsync, _ptsz,
	  (CUstream stream, CUdeviceptr ptr, size_t bytes, unsigned int flags),
	  return sim_stream(stream, ptds, &stream);)
