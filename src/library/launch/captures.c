#include "library/launch/captures.h"

#include "library/launch/inflight/inflight.h"
#include "library/loader/real.h"
#include "library/sys/locks.h"

/* The most captures whose streams are remembered. If a capture beyond these ends with its stream, that end is missed. */
#define ORIGINS 64

struct origin {
	CUstream stream;
	CUcontext context;
};

static struct {
	struct origin origin[ORIGINS];
	uint32_t count;
} begun;

/* The legacy stream cannot be captured, so NULL means the thread's own stream. */
static CUstream stream_of(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

void captures_begin(void)
{
	inflight_capture_begins();
}

CUresult captures_began(CUstream stream, CUresult result)
{
	struct origin origin = { .stream = stream_of(stream) };

	if (result != CUDA_SUCCESS) {
		inflight_capture_ended();
		return result;
	}
	if (real.cuStreamGetCtx && real.cuStreamGetCtx(origin.stream, &origin.context))
		origin.context = NULL;
	WITH_LOCK(&locks.captures);
	if (begun.count < ORIGINS)
		begun.origin[begun.count++] = origin;
	return result;
}

/* Forgets one capture of the stream, or of the context if `stream` is NULL. Returns false if there is none. */
static bool forget(CUstream stream, CUcontext context)
{
	WITH_LOCK(&locks.captures);
	for (uint32_t i = 0; i < begun.count; i++)
		if (stream ? begun.origin[i].stream == stream : begun.origin[i].context == context) {
			begun.origin[i] = begun.origin[--begun.count];
			return true;
		}
	return false;
}

/* An invalidated capture ends, too, and cuStreamEndCapture returns a capture error. After other errors it continues. */
static bool has_ended(CUstream stream, CUresult result)
{
	CUstreamCaptureStatus status;

	if (result < CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ||
	    result > CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
		return result == CUDA_SUCCESS;
	return real.cuStreamIsCapturing &&
	       real.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_NONE;
}

void captures_end_called(CUstream stream, CUresult result)
{
	if (!has_ended(stream_of(stream), result))
		return;
	forget(stream_of(stream), NULL);
	inflight_capture_ended();
}

void captures_stream_gone(CUstream stream)
{
	if (stream && forget(stream, NULL))
		inflight_capture_ended();
}

void captures_context_gone(CUcontext context)
{
	while (context && forget(NULL, context))
		inflight_capture_ended();
}

void captures_reset(void)
{
	begun.count = 0;
}
