#include "interpose/ahead_feed.h"

#include <sys/prctl.h>

#include "interpose/ahead_queue.h"
#include "interpose/gate.h"
#include "interpose/log.h"
#include "interpose/real.h"
#include "interpose/thread.h"

#define IDLE_NAP_NS (1 * NS_PER_S)
#define LOG_NS (10 * NS_PER_S)
/*
 * At exit: what is queued has this long to be handed over (what comes after main() may still wait for it, and
 * a turn comes sooner), and then the feeder to end.
 */
#define LEAVE_PATIENCE_NS (5 * NS_PER_S)
#define LEAVE_END_NS (100 * NS_PER_MS)

static bool is_started; /* under the queue's lock */
static _Atomic bool is_leaving, is_running;
static __thread bool is_me;

bool ahead_feed_is_me(void)
{
	return is_me;
}

/* ---- handing over ---- */

static CUresult launch_kernel(struct ahead_record *r)
{
	unsigned char *attributes = ahead_record_data(r);
	unsigned char *params = attributes +
				(((size_t)r->kernel.attributes * AHEAD_ATTRIBUTE_BYTES + 15) &
				 ~(size_t)15);
	size_t bytes = r->kernel.params_bytes;
	void *pointers[AHEAD_PARAMS_MAX];
	void *packed[] = { (void *)1, params, (void *)2, &bytes, NULL };
	void **by_pointers = r->kernel.has_params ? pointers : NULL;
	void **extra = r->kernel.has_extra ? packed : NULL;
	const unsigned int *g = r->kernel.grid, *b = r->kernel.block;

	for (unsigned int i = 0; i < r->kernel.params_count; i++)
		pointers[i] = params + r->kernel.offset[i];
	if (!r->kernel.is_config)
		return real.cuLaunchKernel(r->kernel.function, g[0], g[1], g[2], b[0], b[1], b[2],
					   r->kernel.shared_bytes, r->stream, by_pointers, extra);
	const CUlaunchConfig config = {
		.gridDimX = g[0],
		.gridDimY = g[1],
		.gridDimZ = g[2],
		.blockDimX = b[0],
		.blockDimY = b[1],
		.blockDimZ = b[2],
		.sharedMemBytes = r->kernel.shared_bytes,
		.hStream = r->stream,
		.attrs = r->kernel.attributes ? (CUlaunchAttribute *)(void *)attributes : NULL,
		.numAttrs = r->kernel.attributes,
	};
	return real.cuLaunchKernelEx(&config, r->kernel.function, by_pointers, extra);
}

static CUresult set_memory(const struct ahead_record *r)
{
	switch (r->set.element_bytes) {
	case 1:
		return real.cuMemsetD8Async(r->set.dst, (unsigned char)r->set.value, r->set.count,
					    r->stream);
	case 2:
		return real.cuMemsetD16Async(r->set.dst, (unsigned short)r->set.value, r->set.count,
					     r->stream);
	default: return real.cuMemsetD32Async(r->set.dst, r->set.value, r->set.count, r->stream);
	}
}

static CUresult start_work(struct ahead_record *r)
{
	switch (r->kind) {
	case AHEAD_KERNEL: return launch_kernel(r);
	case AHEAD_SET: return set_memory(r);
	default:
		return real.cuMemcpyDtoDAsync_v2(r->copy.dst, r->copy.src, r->copy.bytes, r->stream);
	}
}

/* As a thread that launches would, in its context. */
static CUresult hand_over(struct ahead_record *r, CUcontext *current)
{
	struct gate_pass pass;
	CUresult result;

	if (r->kind == AHEAD_END)
		return ahead_end_event(r->event);
	if (r->context != *current) {
		result = real.cuCtxSetCurrent(r->context);
		if (result != CUDA_SUCCESS)
			return result;
		*current = r->context;
	}
	switch (r->kind) {
	case AHEAD_RECORD: return real.cuEventRecord(r->event, r->stream);
	case AHEAD_WAIT: return real.cuStreamWaitEvent(r->stream, r->event, 0);
	default: break;
	}
	gate_enter(&pass, &r->work);
	/* The driver may be on its way out. */
	result = atomic_load(&is_leaving) ? CUDA_ERROR_DEINITIALIZED : start_work(r);
	gate_leave(&pass, &r->work, result);
	return result;
}

/* ---- the thread ---- */

static void lock_queue(void)
{
	struct ahead_queue *q = &ahead_queue;

	if (sys_trylock(&q->lock))
		return;
	atomic_store(&q->feeder_locks, true);
	sys_lock(&q->lock);
	atomic_store(&q->feeder_locks, false);
}

/* The oldest record. None: what was queued is known to be handed over, and the feeder's to sleep. */
static struct ahead_record *next(void)
{
	struct ahead_queue *q = &ahead_queue;

	lock_queue();
	struct ahead_record *r = ahead_queue_head();
	atomic_store(&q->is_fed, r != NULL);
	sys_unlock(&q->lock);
	return r;
}

static void done(struct ahead_record *r, CUresult result)
{
	struct ahead_queue *q = &ahead_queue;
	bool has_waiters;

	lock_queue();
	if (result != CUDA_SUCCESS)
		ahead_failed(result);
	ahead_queue_pop(r);
	if (q->handed == q->pushed && ahead_has_lowered()) {
		/* In the driver without the lock, as always. What comes meanwhile is queued behind it. */
		sys_unlock(&q->lock);
		ahead_set_lowered();
		lock_queue();
	}
	if (q->handed == q->pushed && !ahead_keeps_error())
		atomic_store(&guest.ahead, 0);
	has_waiters = q->handed >= q->wake_at;
	if (has_waiters) {
		q->wake_at = UINT64_MAX;
		atomic_fetch_add(&q->moved, 1);
	}
	sys_unlock(&q->lock);
	if (has_waiters)
		sys_futex_wake(&q->moved, INT32_MAX);
}

/* The handle of a context that is gone may be another's: nothing is kept current over a rest. */
static void rest(CUcontext *current, uint32_t filled)
{
	if (*current)
		real.cuCtxSetCurrent(NULL);
	*current = NULL;
	sys_futex_wait(&ahead_queue.filled, filled, IDLE_NAP_NS, false);
}

/* Programs may be killed before they could log at their end. */
static void log_now_and_then(void)
{
	static uint64_t last_ns;
	uint64_t now = sys_now_ns();

	if (now - last_ns < LOG_NS)
		return;
	if (last_ns)
		ahead_log();
	last_ns = now;
}

static void *feeder_main(void *unused)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext current = NULL;

	is_me = true;
	prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	prctl(PR_SET_NAME, "allot-feed", 0, 0, 0);
	if (real.cuThreadExchangeStreamCaptureMode)
		real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t filled = atomic_load(&ahead_queue.filled);

		if (atomic_load(&is_leaving))
			break;
		struct ahead_record *r = next();
		if (unlikely(log_is_on))
			log_now_and_then();
		if (r)
			done(r, hand_over(r, &current));
		else
			rest(&current, filled);
	}
	atomic_store(&is_running, false);
	return NULL;
}

bool ahead_feed_start(void)
{
	if (!is_started) {
		atomic_store(&is_running, true);
		is_started = thread_create(feeder_main);
		atomic_store(&is_running, is_started);
	}
	return is_started;
}

void ahead_leave(void)
{
	uint64_t begin = sys_now_ns();

	while (ahead_is_pending() && !ahead_keeps_error() && sys_now_ns() - begin < LEAVE_PATIENCE_NS)
		sys_sleep_ns(100 * NS_PER_US);
	atomic_store(&is_leaving, true);
	atomic_fetch_add(&ahead_queue.filled, 1);
	sys_futex_wake(&ahead_queue.filled, 1);
	begin = sys_now_ns();
	while (atomic_load(&is_running) && sys_now_ns() - begin < LEAVE_END_NS)
		sys_sleep_ns(100 * NS_PER_US);
	ahead_log();
}

void ahead_feed_reset(void)
{
	is_started = false;
	is_me = false;
	atomic_store(&is_leaving, false);
	atomic_store(&is_running, false);
}
