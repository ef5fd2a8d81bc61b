/* Forward-progress cases of one process, beside a tenant that saturates the GPU. */
#include "progress.h"

#include <pthread.h>

#define BEHIND 50 /* kernels queued behind what waits */
#define PERSISTENT_US 500000
#define CAPTURED 20

/*
 * A stream waits for a value, 50 kernels queue behind it, and only then the same thread writes the
 * value: by the processor, or by another stream. A gate that waits for the queue to shrink would wait
 * for ever.
 */
void progress_waitvalue(struct progress *p)
{
	volatile uint32_t *value;
	void *host;
	CUdeviceptr at;

	GPU_DO(host_alloc, &host, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	GPU_DO(host_pointer, &at, host, 0);
	value = host;
	*value = 0;
	for (unsigned int rep = 1; rep <= p->reps; rep++) {
		uint64_t begin_ns = now_ns();

		GPU_DO(stream_wait_value, p->stream, at, rep, CU_STREAM_WAIT_VALUE_GEQ);
		for (int i = 0; i < BEHIND; i++)
			gpu_burn(p->stream, p->kernel_us);
		if (rep % 2)
			*value = rep;
		else
			GPU_DO(stream_write_value, p->second, at, rep, 0);
		GPU_DO(stream_sync, p->stream);
		progress_rep(p, begin_ns, 0);
	}
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take_lock(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

/* A host function in the stream needs a lock that the launching thread holds while it launches on. */
void progress_hostfunc(struct progress *p)
{
	for (unsigned int rep = 0; rep < p->reps; rep++) {
		uint64_t begin_ns = now_ns();

		pthread_mutex_lock(&lock);
		gpu_burn(p->stream, p->kernel_us);
		GPU_DO(launch_host, p->stream, take_lock, NULL);
		for (int i = 0; i < BEHIND; i++)
			gpu_burn(p->stream, p->kernel_us);
		pthread_mutex_unlock(&lock);
		GPU_DO(stream_sync, p->stream);
		progress_rep(p, begin_ns, 0);
	}
}

/* One kernel that runs far past any lease. What its neighbour gets meanwhile is the caller's to see. */
void progress_persistent(struct progress *p)
{
	for (unsigned int rep = 0; rep < p->reps; rep++) {
		uint64_t begin_ns = now_ns();

		gpu_burn(p->stream, PERSISTENT_US);
		GPU_DO(stream_sync, p->stream);
		progress_rep(p, begin_ns, 0);
		nap_ns(20 * NSEC_PER_MSEC);
	}
}

/*
 * Captures in global mode, with work of another stream in flight: there any query or record from a
 * second thread breaks the capture, unless that thread is in relaxed mode.
 */
void progress_capture(struct progress *p)
{
	for (unsigned int rep = 0; rep < p->reps; rep++) {
		uint64_t begin_ns = now_ns();
		CUgraph graph = NULL;
		CUgraphExec exec;
		CUresult result;

		for (int i = 0; i < 4; i++)
			gpu_burn(p->second, p->kernel_us);
		GPU_DO(capture_begin, p->stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
		for (int i = 0; i < CAPTURED; i++) {
			gpu_burn(p->stream, 50);
			nap_ns(NSEC_PER_MSEC / 10);
		}
		result = gpu.capture_end(p->stream, &graph);
		if (result != CUDA_SUCCESS)
			progress_fail(p, "the capture broke: %s", gpu_error_name(result));
		GPU_DO(graph_instantiate, &exec, graph, 0);
		GPU_DO(graph_launch, exec, p->stream);
		GPU_DO(stream_sync, p->stream);
		GPU_DO(stream_sync, p->second);
		GPU_DO(graph_exec_destroy, exec);
		GPU_DO(graph_destroy, graph);
		progress_rep(p, begin_ns, 0);
	}
}
