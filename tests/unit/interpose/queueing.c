#include "queueing.h"

#include "interpose/ahead_feed.h"
#include "interpose/config.h"
#include "interpose/door.h"

struct noted noted[NOTED_MAX];
static uint32_t noted_n;
static pthread_mutex_t noted_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int unused;
} events[EVENTS];
static __thread CUcontext current;

_Atomic uint32_t next_launch_fails;
bool environment_allows = true;
void *allot_thunk_real[THUNK_COUNT];

bool config_launch_ahead(void)
{
	return environment_allows;
}

/* ---- the driver ---- */

static void note(enum noted_kind kind, CUstream stream, uint32_t who, uint64_t what, bool is_whole)
{
	pthread_mutex_lock(&noted_lock);
	assert_true(noted_n < NOTED_MAX);
	noted[noted_n++] = (struct noted){ kind, stream, current, what, who, is_whole };
	pthread_mutex_unlock(&noted_lock);
}

uint32_t noted_count(void)
{
	pthread_mutex_lock(&noted_lock);
	uint32_t n = noted_n;
	pthread_mutex_unlock(&noted_lock);
	return n;
}

struct packed {
	uint32_t who;
	uint64_t what;
	unsigned char pattern[PATTERN_BYTES];
};

static unsigned char pattern_at(uint64_t what, size_t i)
{
	return (unsigned char)(what * 31 + i * 7);
}

static CUresult run_kernel(CUstream stream, void **params, void **extra)
{
	uint32_t failure = atomic_exchange(&next_launch_fails, 0);
	const unsigned char *pattern;
	uint64_t what;
	uint32_t who;
	bool is_whole = true;

	if (failure)
		return (CUresult)failure;
	if (extra) {
		const struct packed *p = extra[1];
		assert_int_equal(*(size_t *)extra[3], sizeof(*p));
		who = p->who;
		what = p->what;
		pattern = p->pattern;
	} else {
		memcpy(&who, params[0], sizeof(who));
		memcpy(&what, params[1], sizeof(what));
		pattern = params[2];
	}
	for (size_t i = 0; i < PATTERN_BYTES; i++)
		is_whole = is_whole && pattern[i] == pattern_at(what, i);
	note(NOTED_KERNEL, stream, who, what, is_whole);
	fake_launch(stream);
	fake_complete_all();
	return CUDA_SUCCESS;
}

static CUresult launch_kernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			      unsigned int bx, unsigned int by, unsigned int bz,
			      unsigned int shared, CUstream stream, void **params, void **extra)
{
	assert_true(gy == 1 && gz == 1 && bx == 256 && by == 1 && bz == 1 && shared == 0);
	return run_kernel(stream, params, extra);
}

static CUresult launch_configured(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	uint32_t id;

	assert_int_equal(c->numAttrs, 1);
	memcpy(&id, c->attrs, sizeof(id));
	assert_int_equal(id, 8);
	return run_kernel(c->hStream, params, extra);
}

static CUresult set_d32(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)
{
	note(NOTED_SET, stream, 0, value, true);
	fake_launch(stream);
	fake_complete_all();
	return CUDA_SUCCESS;
}

static CUresult copy_dtod(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	note(NOTED_COPY, stream, 0, bytes, true);
	fake_launch(stream);
	fake_complete_all();
	return CUDA_SUCCESS;
}

static bool is_own(CUevent event)
{
	return (void *)event >= (void *)events && (void *)event < (void *)(events + EVENTS);
}

static CUresult (*flights_record)(CUevent event, CUstream stream);

/* Marks of flight.c are not the program's. */
static CUresult record(CUevent event, CUstream stream)
{
	if (!is_own(event))
		return flights_record(event, stream);
	note(NOTED_RECORD, stream, 0, (uint64_t)(uintptr_t)event, true);
	return CUDA_SUCCESS;
}

static CUresult wait_event(CUstream stream, CUevent event, unsigned int flags)
{
	assert_int_equal(flags, 0);
	note(NOTED_WAIT, stream, 0, (uint64_t)(uintptr_t)event, true);
	return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
	note(NOTED_SYNC, NULL, 0, 0, true);
	return CUDA_SUCCESS;
}

static CUresult query(CUevent event)
{
	return CUDA_SUCCESS;
}

static CUresult param_info(CUfunction f, size_t index, size_t *offset, size_t *bytes)
{
	static const size_t offsets[] = { 0, 8, 16 }, sizes[] = { 4, 8, PATTERN_BYTES };

	if (index >= 3)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = offsets[index];
	*bytes = sizes[index];
	return CUDA_SUCCESS;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	if (ptr < KNOWN_MEMORY || ptr >= KNOWN_MEMORY + KNOWN_BYTES)
		return CUDA_ERROR_NOT_FOUND;
	*base = KNOWN_MEMORY;
	*bytes = KNOWN_BYTES;
	return CUDA_SUCCESS;
}

static CUresult get_version(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext context)
{
	current = context;
	return fake_set_current(context);
}

static CUresult get_current(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

void use_context(CUcontext context)
{
	set_current(context);
}

CUevent event_of(unsigned int i)
{
	return (CUevent)(void *)&events[i];
}

/* ---- the program, as wrap.c has it ---- */

static CUresult call(const struct work *work, const struct ahead_kernel *k,
		     CUresult (*start)(void *), void *what,
		     bool (*queue)(const struct work *, void *, CUresult *))
{
	struct gate_pass pass;
	CUresult result;

	if (ahead_is_pending() && (queue(work, what, &result) || (result = ahead_settle())))
		return result;
	if (gate_holds(&pass, work) && queue(work, what, &result))
		return result;
	if (pass.would_wait)
		gate_enter(&pass, work);
	result = start(what);
	gate_leave(&pass, work, result);
	bool proves = pass.device && pass.is_raised && gate_lets_queue(&pass) && !result;
	if (proves && k)
		ahead_prove_launch(work, k);
	else if (proves)
		ahead_prove_stream(work);
	return result;
}

static CUresult start_kernel(void *what)
{
	const struct ahead_kernel *k = what;

	if (k->config)
		return real.cuLaunchKernelEx(k->config, k->function, k->params, k->extra);
	return real.cuLaunchKernel(k->function, k->grid[0], 1, 1, k->block[0], 1, 1, 0, k->stream,
				   k->params, k->extra);
}

static bool queue_kernel(const struct work *work, void *what, CUresult *ret_result)
{
	return ahead_launch(work, what, ret_result);
}

enum form { BY_POINTERS, PACKED, CONFIGURED };

static CUresult call_form(enum form form, unsigned int blocks, enum stream_meaning streams,
			  CUstream stream, uint32_t who, uint64_t what)
{
	struct work work = fake_kernel(stream, launched_function);
	struct packed p = { .who = who, .what = what };
	size_t bytes = sizeof(p);
	void *params[] = { &p.who, &p.what, p.pattern };
	void *extra[] = { (void *)1, &p, (void *)2, &bytes, NULL };
	uint32_t attribute[18] = { 8 };
	const CUlaunchConfig config = { blocks, 1, 1, 256, 1, 1, 0, stream, (void *)attribute, 1 };
	struct ahead_kernel k = {
		.function = (CUfunction)(uintptr_t)launched_function,
		.grid = { blocks, 1, 1 },
		.block = { 256, 1, 1 },
		.stream = stream,
		.params = form == PACKED ? NULL : params,
		.extra = form == PACKED ? extra : NULL,
		.config = form == CONFIGURED ? &config : NULL,
	};

	work.streams = streams;
	for (size_t i = 0; i < PATTERN_BYTES; i++)
		p.pattern[i] = pattern_at(what, i);
	CUresult result = call(&work, &k, start_kernel, &k, queue_kernel);
	/* The caller's own again: what is queued has its copy. */
	memset(&p, 0xee, sizeof(p));
	memset(attribute, 0xee, sizeof(attribute));
	return result;
}

CUresult call_kernel_of(unsigned int blocks, enum stream_meaning streams, CUstream stream,
			uint32_t who, uint64_t what)
{
	return call_form(BY_POINTERS, blocks, streams, stream, who, what);
}

CUresult call_kernel(CUstream stream, uint32_t who, uint64_t what)
{
	return call_form(BY_POINTERS, 132, LEGACY, stream, who, what);
}

CUresult call_kernel_packed(CUstream stream, uint32_t who, uint64_t what)
{
	return call_form(PACKED, 132, LEGACY, stream, who, what);
}

CUresult call_kernel_configured(CUstream stream, uint32_t who, uint64_t what)
{
	return call_form(CONFIGURED, 132, LEGACY, stream, who, what);
}

struct memory_call {
	CUstream stream;
	CUdeviceptr dst, src;
	uint32_t value;
	size_t count;
};

static CUresult start_set(void *what)
{
	const struct memory_call *m = what;

	return real.cuMemsetD32Async(m->dst, m->value, m->count, m->stream);
}

static bool queue_set(const struct work *work, void *what, CUresult *ret_result)
{
	const struct memory_call *m = what;

	return ahead_set(work, m->dst, m->value, 4, m->count, ret_result);
}

CUresult call_set(CUstream stream, CUdeviceptr dst, uint32_t value, size_t count)
{
	struct memory_call m = { stream, dst, 0, value, count };
	struct work work = WORK_COPY(stream, count * 4);

	return call(&work, NULL, start_set, &m, queue_set);
}

static CUresult start_copy(void *what)
{
	const struct memory_call *m = what;

	return real.cuMemcpyDtoDAsync_v2(m->dst, m->src, m->count, m->stream);
}

static bool queue_copy(const struct work *work, void *what, CUresult *ret_result)
{
	const struct memory_call *m = what;

	return ahead_copy(work, m->dst, m->src, m->count, ret_result);
}

CUresult call_copy(CUstream stream, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	struct memory_call m = { stream, dst, src, 0, bytes };
	struct work work = WORK_COPY(stream, bytes);

	return call(&work, NULL, start_copy, &m, queue_copy);
}

/* As a thunk: its own question first, where anything is pending. */
#define MEET(symbol, go_on, ...) \
	{ \
		const uintptr_t argument[6] = { __VA_ARGS__ }; \
		CUresult result; \
		if (ahead_is_pending() && ahead_meet(THUNK_##symbol, argument, &result)) \
			return result; \
		return go_on; \
	}

CUresult call_record(CUevent event, CUstream stream)
	MEET(cuEventRecord, record(event, stream), (uintptr_t)event, (uintptr_t)stream)

		CUresult call_wait(CUstream stream, CUevent event)
			MEET(cuStreamWaitEvent, wait_event(stream, event, 0), (uintptr_t)stream,
			     (uintptr_t)event, 0)

				CUresult
	call_query(CUevent event) MEET(cuEventQuery, query(event), (uintptr_t)event)

		CUresult call_event_synchronize(CUevent event)
			MEET(cuEventSynchronize, CUDA_SUCCESS, (uintptr_t)event)

				CUresult
	call_elapsed(CUevent start, CUevent end)
		MEET(cuEventElapsedTime, CUDA_SUCCESS, 0, (uintptr_t)start, (uintptr_t)end)

			CUresult
	call_stream_query(CUstream stream) MEET(cuStreamQuery, CUDA_SUCCESS, (uintptr_t)stream)

		CUresult call_stream_synchronize(CUstream stream)
			MEET(cuStreamSynchronize, CUDA_SUCCESS, (uintptr_t)stream)

				CUresult call_synchronize(void)
					MEET(cuCtxSynchronize, synchronize(), 0)

	/* ---- a test ---- */

	int queueing_start(void **state)
{
	launching_start(state);
	ahead_reset();
	flights_record = real.cuEventRecord;
	real.cuEventRecord = record;
	real.cuCtxSetCurrent = set_current;
	real.cuCtxGetCurrent = get_current;
	real.cuLaunchKernel = launch_kernel;
	real.cuLaunchKernelEx = launch_configured;
	real.cuMemsetD32Async = set_d32;
	real.cuMemcpyDtoDAsync_v2 = copy_dtod;
	real.cuStreamWaitEvent = wait_event;
	real.cuFuncGetParamInfo = param_info;
	real.cuMemGetAddressRange_v2 = address_range;
	real.cuDriverGetVersion = get_version;
	allot_thunk_real[THUNK_cuEventRecord] = (void *)record;
	allot_thunk_real[THUNK_cuStreamWaitEvent] = (void *)wait_event;
	fake_control->device[0].launch_ahead_ns = 100 * NS_PER_S;
	fake_guest_set_lease(LEASE_GO);
	noted_n = 0;
	use_context(FAKE_CONTEXT);
	start_helper();
	return 0;
}

int queueing_end(void **state)
{
	fake_guest_set_lease(LEASE_GO);
	ahead_settle();
	ahead_leave();
	return launching_end(state);
}

void prove(CUstream stream)
{
	call_kernel(stream, 0, 0);
	call_set(stream, KNOWN_MEMORY, 0, 1);
	/* Calls by events are looked at where something is pending, as if it were. */
	assert_int_equal(ahead_settle(), CUDA_SUCCESS);
	atomic_store(&guest.ahead, 1);
	for (unsigned int i = 0; i < EVENTS; i++) {
		call_record(event_of(i), stream);
		call_wait(stream, event_of(i));
	}
	assert_int_equal(ahead_settle(), CUDA_SUCCESS);
	atomic_store(&guest.ahead, 0);
}
