#include "fake_driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "library/launch/inflight/inflight_record.h"

#define FEW 8 /* streams that a usual test uses */

struct real_driver real;
struct real_nvml real_nvml;

_Atomic uint64_t fake_elapsed_us;
_Atomic bool fake_record_fails;

struct CUstream_st {
	uint64_t launched, done;
	bool is_capturing;
};

struct CUevent_st {
	struct CUstream_st *stream;
	uint64_t after; /* done when the stream has completed this many */
	bool is_destroyed;
	struct CUevent_st *next; /* all that were ever made: a late query must be seen, not crash */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st storage[FAKE_STREAMS + FEW];
static struct CUstream_st *streams = storage;
static struct CUevent_st *events;
static struct fake_counts counts;

/*
 * The kernel places `storage` at random. The first streams must not have the place in the library's table that the default
 * stream has (INFLIGHT_ONLY_PLACE): such a stream has no fast path.
 */
static void choose_streams(void)
{
	unsigned i = 2;

	while (i < FEW) {
		bool is_bad = inflight_hash(&streams[i], 0) == 0;

		streams += is_bad;
		i = is_bad ? 2 : i + 1;
	}
}

CUstream fake_stream(unsigned i)
{
	return i == 0 ? CU_STREAM_LEGACY : i == 1 ? CU_STREAM_PER_THREAD : &streams[i];
}

static struct CUstream_st *stream_of(CUstream handle)
{
	if (!handle || handle == CU_STREAM_LEGACY)
		return &streams[0];
	return handle == CU_STREAM_PER_THREAD ? &streams[1] : handle;
}

CUresult fake_launch(CUstream stream)
{
	pthread_mutex_lock(&lock);
	stream_of(stream)->launched++;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

uint64_t fake_launched(CUstream stream)
{
	pthread_mutex_lock(&lock);
	uint64_t n = stream_of(stream)->launched;
	pthread_mutex_unlock(&lock);
	return n;
}

void fake_complete(CUstream stream, uint64_t count)
{
	pthread_mutex_lock(&lock);
	stream_of(stream)->done = count;
	pthread_mutex_unlock(&lock);
}

void fake_complete_all(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < FAKE_STREAMS; i++)
		streams[i].done = streams[i].launched;
	pthread_mutex_unlock(&lock);
}

void fake_set_capturing(CUstream stream, bool is_capturing)
{
	pthread_mutex_lock(&lock);
	stream_of(stream)->is_capturing = is_capturing;
	pthread_mutex_unlock(&lock);
}

struct fake_counts fake_counts(void)
{
	pthread_mutex_lock(&lock);
	struct fake_counts c = counts;
	pthread_mutex_unlock(&lock);
	return c;
}

struct work fake_kernel(CUstream stream, const void *function)
{
	return (struct work){
		.kind = WORK_IS_KERNEL,
		.streams = LEGACY,
		.stream = stream,
		.subject = function,
		.blocks = 132,
		.threads = 256,
	};
}

/* ---- the driver's functions ---- */

/* The mode of every thread that has set no other. */
static __thread CUcontext current = FAKE_CONTEXT;

static CUresult get_current(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

CUresult fake_set_current(CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
	pthread_mutex_lock(&lock);
	*status = stream_of(stream)->is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE
						  : CU_STREAM_CAPTURE_STATUS_NONE;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned int flags)
{
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*event = calloc(1, sizeof(**event));
	if (!*event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	(*event)->next = events;
	events = *event;
	counts.creates++;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream handle)
{
	struct CUstream_st *stream = stream_of(handle);

	if (fake_record_fails)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!current && (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD))
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	event->stream = stream;
	event->after = stream->launched;
	counts.records++;
	counts.records_in_capture += stream->is_capturing;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
	pthread_mutex_lock(&lock);
	counts.queries++;
	counts.queries_after_destroy += event->is_destroyed;
	bool is_done = !event->stream || event->stream->done >= event->after;
	pthread_mutex_unlock(&lock);
	return is_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult event_elapsed(float *ms, CUevent start, CUevent end)
{
	*ms = (float)fake_elapsed_us / 1000;
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	pthread_mutex_lock(&lock);
	event->is_destroyed = true;
	counts.destroys++;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

void fake_driver_start(void)
{
	memset(&real, 0, sizeof(real));
	memset(storage, 0, sizeof(storage));
	choose_streams();
	memset(&counts, 0, sizeof(counts));
	fake_elapsed_us = 100;
	fake_record_fails = false;
	real.cuCtxGetCurrent = get_current;
	real.cuCtxSetCurrent = fake_set_current;
	fake_set_current(FAKE_CONTEXT);
	real.cuCtxGetDevice = get_device;
	real.cuStreamIsCapturing = is_capturing;
	real.cuEventCreate = event_create;
	real.cuEventRecord = event_record;
	real.cuEventQuery = event_query;
	real.cuEventElapsedTime = event_elapsed;
	real.cuEventDestroy_v2 = event_destroy;
}
