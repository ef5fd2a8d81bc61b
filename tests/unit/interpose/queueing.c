#include "queueing.h"

#include "interpose/ahead_feed.h"
#include "interpose/ahead_queue.h"
#include "interpose/config.h"
#include "interpose/door.h"

struct noted noted[NOTED_MAX];
static uint32_t noted_n;
static pthread_mutex_t noted_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int unused;
} events[EVENTS + CREATED];
static __thread CUcontext current;

_Atomic uint32_t next_launch_fails;
bool environment_allows = true;
void *allot_thunk_real[THUNK_ALL];

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
	return (void *)event >= (void *)events &&
	       (void *)event < (void *)(events + EVENTS + CREATED);
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

static CUresult synchronize_stream(CUstream stream)
{
	return CUDA_SUCCESS;
}

static uint32_t created;

static CUresult create(CUevent *event, unsigned int flags)
{
	*event = event_of(EVENTS + created++ % CREATED);
	return CUDA_SUCCESS;
}

static CUresult destroy(CUevent event)
{
	note(NOTED_END, NULL, 0, (uint64_t)(uintptr_t)event, true);
	return CUDA_SUCCESS;
}

#define ATTRIBUTE_SHARED 8
#define ATTRIBUTE_CLUSTER_WIDTH 10
static _Atomic int shared_of_function;

static CUresult get_attribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	*value = (int)attribute == ATTRIBUTE_SHARED ? atomic_load(&shared_of_function) : 0;
	return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	assert_int_equal(attribute, ATTRIBUTE_SHARED);
	atomic_store(&shared_of_function, value);
	note(NOTED_ATTRIBUTE, NULL, 0, (uint64_t)value, true);
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

	if (ahead_is_pending() && (queue(work, what, &result) || (result = ahead_settle("test"))))
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
	uint32_t attribute[18];
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

	/* A priority of 0; beyond it whatever was there, as a caller's stack has it. */
	for (size_t i = 0; i < 18; i++)
		attribute[i] = (uint32_t)(what * 2654435761U + i);
	attribute[0] = 8;
	attribute[2] = 0;
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

/* As a thunk: its own question first, where anything is pending, or always. */
#define MET(name, params, asks, symbol, go_on, ...) \
	CUresult name params \
	{ \
		const uintptr_t argument[6] = { __VA_ARGS__ }; \
		CUresult result; \
		if ((asks) && ahead_meet(THUNK_##symbol, argument, &result)) \
			return result; \
		return go_on; \
	}
#define PENDING ahead_is_pending()

/* clang-format off */
MET(call_record, (CUevent event, CUstream stream), PENDING, cuEventRecord,
    record(event, stream), (uintptr_t)event, (uintptr_t)stream)
MET(call_wait, (CUstream stream, CUevent event), PENDING, cuStreamWaitEvent,
    wait_event(stream, event, 0), (uintptr_t)stream, (uintptr_t)event)
MET(call_create, (CUevent *event, unsigned int flags), true, cuEventCreate,
    create(event, flags), (uintptr_t)event, flags)
MET(call_destroy, (CUevent event), PENDING, cuEventDestroy_v2, destroy(event), (uintptr_t)event)
MET(call_query, (CUevent event), PENDING, cuEventQuery, query(event), (uintptr_t)event)
MET(call_event_synchronize, (CUevent event), PENDING, cuEventSynchronize, CUDA_SUCCESS,
    (uintptr_t)event)
MET(call_elapsed, (CUevent start, CUevent end), PENDING, cuEventElapsedTime, CUDA_SUCCESS, 0,
    (uintptr_t)start, (uintptr_t)end)
MET(call_stream_query, (CUstream stream), PENDING, cuStreamQuery, CUDA_SUCCESS, (uintptr_t)stream)
MET(call_stream_synchronize, (CUstream stream), true, cuStreamSynchronize,
    synchronize_stream(stream), (uintptr_t)stream)
MET(call_synchronize, (void), true, cuCtxSynchronize, synchronize(), 0)
MET(call_set_shared, (int value), true, cuFuncSetAttribute,
    set_attribute((CUfunction)(uintptr_t)launched_function, ATTRIBUTE_SHARED, value),
    (uintptr_t)launched_function, ATTRIBUTE_SHARED, (uintptr_t)value)
MET(call_get_shared, (int *value), PENDING, cuFuncGetAttribute,
    get_attribute(value, ATTRIBUTE_SHARED, (CUfunction)(uintptr_t)launched_function),
    (uintptr_t)value, ATTRIBUTE_SHARED, (uintptr_t)launched_function)
MET(call_set_clusters, (int value), true, cuFuncSetAttribute, CUDA_SUCCESS,
    (uintptr_t)launched_function, ATTRIBUTE_CLUSTER_WIDTH, (uintptr_t)value)
/* clang-format on */

/* ---- a test ---- */

int queueing_start(void **state)
{
	launching_start(state);
	atomic_store(&ahead_queue.is_off, false);
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
	real.cuFuncGetAttribute = get_attribute;
	real.cuFuncGetParamInfo = param_info;
	real.cuMemGetAddressRange_v2 = address_range;
	real.cuDriverGetVersion = get_version;
	allot_thunk_real[THUNK_cuEventRecord] = (void *)record;
	allot_thunk_real[THUNK_cuStreamWaitEvent] = (void *)wait_event;
	allot_thunk_real[THUNK_cuEventCreate] = (void *)create;
	allot_thunk_real[THUNK_cuCtxSynchronize] = (void *)synchronize;
	allot_thunk_real[THUNK_cuStreamSynchronize] = (void *)synchronize_stream;
	allot_thunk_real[THUNK_cuEventDestroy_v2] = (void *)destroy;
	allot_thunk_real[THUNK_cuFuncSetAttribute] = (void *)set_attribute;
	atomic_store(&shared_of_function, 48 << 10);
	created = 0;
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
	ahead_settle("test");
	ahead_leave();
	return launching_end(state);
}

void prove(CUstream stream)
{
	call_kernel(stream, 0, 0);
	call_set(stream, KNOWN_MEMORY, 0, 1);
	/* Calls by events are looked at where something is pending, as if it were. */
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	atomic_store(&guest.ahead, 1);
	for (unsigned int i = 0; i < EVENTS; i++) {
		call_record(event_of(i), stream);
		call_wait(stream, event_of(i));
	}
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	atomic_store(&guest.ahead, 0);
}

/* ---- callers ---- */

static void *run_caller(void *context)
{
	struct caller *c = context;

	use_context(FAKE_CONTEXT);
	c->call();
	atomic_store(&c->has_returned, 1);
	return NULL;
}

void start_caller(struct caller *c, void (*does)(void))
{
	c->call = does;
	atomic_store(&c->has_returned, 0);
	assert_int_equal(pthread_create(&c->thread, NULL, run_caller, c), 0);
}

bool is_held(struct caller *c)
{
	usleep(30000);
	return !atomic_load(&c->has_returned);
}

void end_caller(struct caller *c)
{
	fake_guest_set_lease(LEASE_GO);
	assert_true(becomes(&c->has_returned, 1));
	pthread_join(c->thread, NULL);
}

void assert_noted(uint32_t at, enum noted_kind kind, uint64_t what)
{
	assert_true(at < noted_count());
	assert_int_equal(noted[at].kind, kind);
	assert_int_equal(noted[at].what, what);
	assert_true(noted[at].is_whole);
	assert_ptr_equal(noted[at].context, FAKE_CONTEXT);
}
