/* The events that a traced process records: from the gate, under many threads, and none without a tracer. */
#include "launching.h"

#include <string.h>
#include <sys/mman.h>

#include "library/launch/fast_path_pass.h"
#include "library/launch/trace_launch.h"
#include "library/launch/trace_work.h"
#include "library/trace/trace_record.h"

#define THREADS 4
#define EACH 10000

static struct trace_ring *ring;

/* As trace.c has it, without a daemon. */
static void begin_trace_by(enum trace_clock clock)
{
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ring, MAP_FAILED);
	trace_sink_begin(ring, clock);
	atomic_fetch_or(&process_state.detours, DETOUR_TRACE);
	fast_path_close(FAST_PATH_ALL);
}

static void begin_trace(void)
{
	begin_trace_by(TRACE_COUNTER);
}

static void end_trace(void)
{
	atomic_fetch_and(&process_state.detours, ~(uint32_t)DETOUR_TRACE);
	fast_path_close(FAST_PATH_ALL);
	atomic_store(&trace_sink.ring, NULL);
	munmap(ring, sizeof(*ring));
}

static struct trace_event event(uint64_t number)
{
	struct trace_event e = { 0 };
	uint64_t there;

	assert_true(trace_ring_get(ring, number, &e, &there));
	return e;
}

static const char *name_of(enum trace_name_kind kind, uint64_t key)
{
	for (uint32_t i = 0; i < ring->name_count; i++)
		if (ring->name[i].kind == kind && ring->name[i].key == key)
			return ring->name[i].text;
	return NULL;
}

static CUresult announce_name(const char **name, CUfunction function)
{
	*name = function ? "saxpy" : NULL;
	return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void test_a_launch(void **state)
{
	real.cuFuncGetName = announce_name;
	begin_trace();
	launch(fake_stream(2));
	struct trace_event e = event(1);
	assert_int_equal(trace_sink.next, 1);
	assert_int_equal(e.kind, TRACE_KERNEL);
	assert_int_equal(e.device, 0);
	assert_int_equal(e.thread, (uint32_t)syscall(SYS_gettid));
	assert_int_equal(e.subject, (uintptr_t)launched_function);
	assert_int_equal(e.object, (uintptr_t)fake_stream(2));
	assert_int_equal(e.code, 0);
	assert_int_equal(e.flags, 0);
	assert_true(e.begin > 0 && e.end >= e.begin);
	assert_string_equal(name_of(TRACE_NAMES_FUNCTION, e.subject), "saxpy");
	assert_non_null(name_of(TRACE_NAMES_THREAD, e.thread));
	/* Each name is sent once. */
	for (int i = 0; i < 100; i++)
		launch(fake_stream(2));
	assert_int_equal(trace_sink.next, 101);
	assert_int_equal(ring->name_count, 2);
	/* After an unload the handle may be another function's. */
	trace_code_unloads();
	launch(fake_stream(2));
	assert_int_equal(ring->name_count, 3);
	assert_true(ring->name[2].since > ring->name[0].since);
	end_trace();
	real.cuFuncGetName = NULL;
}

/* Returns the next key above `key` that has its place in the table of names at `at`. */
static uintptr_t next_key(uintptr_t key, uint64_t at)
{
	do
		key += 8;
	while (trace_seen_at(key) != at);
	return key;
}

/* A function that finds no free place in the table of names stays without a name, but other functions get theirs. */
static void test_a_crowded_table_of_names(void **state)
{
	const void *before = launched_function;
	uintptr_t key = 0;
	real.cuFuncGetName = announce_name;
	begin_trace();
	for (int i = 0; i <= TRACE_SEEN_PLACES; i++) {
		key = next_key(key, 0);
		launched_function = (void *)key;
		launch(fake_stream(2));
		assert_int_equal(name_of(TRACE_NAMES_FUNCTION, key) != NULL, i < TRACE_SEEN_PLACES);
	}
	key = next_key(key, 2048);
	launched_function = (void *)key;
	launch(fake_stream(2));
	assert_non_null(name_of(TRACE_NAMES_FUNCTION, key));
	end_trace();
	launched_function = (void *)(uintptr_t)before;
	real.cuFuncGetName = NULL;
}

static void test_a_refused_launch(void **state)
{
	begin_trace();
	launch_with(fake_stream(2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(event(1).code, CUDA_ERROR_INVALID_VALUE);
	end_trace();
}

static void test_without_a_tracer(void **state)
{
	begin_trace();
	launch(fake_stream(2));
	assert_non_null(fast_path_pass(fake_stream(2)));
	assert_ptr_equal(fast_path.real.cuLaunchKernel, trace_launch.cuLaunchKernel);
	assert_null(fast_path.real.cuLaunchKernelEx); /* this driver lacks it */
	atomic_fetch_and(&process_state.detours, ~(uint32_t)DETOUR_TRACE);
	fast_path_close(FAST_PATH_ALL);
	for (int i = 0; i < 10; i++)
		launch(fake_stream(2));
	assert_int_equal(trace_sink.next, 1);
	/* The fast path is open as if nothing had been. */
	assert_non_null(fast_path_pass(fake_stream(2)));
	assert_ptr_equal(fast_path.real.cuLaunchKernel, real.cuLaunchKernel);
	trace_memory(TRACE_ALLOC, 0, 1, 2);
	trace_wait(TRACE_MEMORY_WAIT, 0, trace_begin(), 1, 0);
	assert_int_equal(trace_sink.next, 1);
	end_trace();
}

static bool same(const struct trace_event *a, const struct trace_event *b)
{
	return a->kind == b->kind && a->device == b->device && a->code == b->code &&
	       a->thread == b->thread && a->subject == b->subject && a->object == b->object &&
	       a->amount == b->amount && a->extra == b->extra && a->flags == b->flags;
}

/* The first launch is the gate's; the next passes by the fast path, and is recorded the same. */
static void test_by_the_fast_path(void **state)
{
	begin_trace();
	assert_null(fast_path_pass(fake_stream(2)));
	launch(fake_stream(2));
	assert_non_null(fast_path_pass(fake_stream(2)));
	launch(fake_stream(2));
	launch_with(fake_stream(2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(trace_sink.next, 3);
	assert_int_equal(inflight_launches(0), 2);
	struct trace_event gated = event(1), passed = event(2), refused = event(3);
	assert_true(same(&gated, &passed));
	assert_true(gated.amount && gated.extra);
	assert_true(gated.end <= passed.begin && passed.begin <= passed.end);
	assert_int_equal(refused.code, CUDA_ERROR_INVALID_VALUE);
	/* A kernel that is first launched there is named all the same. */
	real.cuFuncGetName = announce_name;
	launched_function = (const char *)launched_function + 8;
	launch(fake_stream(2));
	assert_string_equal(name_of(TRACE_NAMES_FUNCTION, (uintptr_t)launched_function), "saxpy");
	real.cuFuncGetName = NULL;
	end_trace();
}

/* The handle CU_STREAM_LEGACY has the record of NULL, not the record at the place of its own hash. */
static void test_the_device_of_the_legacy_stream(void **state)
{
	struct inflight_stream *other = inflight_place(inflight_hash(CU_STREAM_LEGACY, 0));

	other->device = 1;
	begin_trace();
	launch(CU_STREAM_LEGACY);
	assert_non_null(fast_path_pass(CU_STREAM_LEGACY));
	launch(CU_STREAM_LEGACY);
	other->device = 0;
	assert_int_equal(event(1).device, 0);
	assert_int_equal(event(2).device, 0);
	end_trace();
}

static void *launch_thrice(void *data)
{
	*(uint32_t *)data = (uint32_t)syscall(SYS_gettid);
	for (int i = 0; i < 3; i++)
		launch(fake_stream(2));
	return NULL;
}

/* A thread may have the address of a thread that has ended. */
static void test_threads_after_each_other(void **state)
{
	uint32_t tid[THREADS];
	pthread_t thread;

	begin_trace();
	launch(fake_stream(2));
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, launch_thrice, &tid[i]), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(trace_sink.next, 1 + 3 * THREADS);
	for (uint64_t n = 0; n < 3 * THREADS; n++)
		assert_int_equal(event(2 + n).thread, tid[n / 3]);
	for (int i = 0; i < THREADS; i++)
		assert_non_null(name_of(TRACE_NAMES_THREAD, tid[i]));
	end_trace();
}

/* Both features at once: a swappable process's launches pass the hold, which the fast path skips. */
static void test_a_swappable_process_has_no_fast_path(void **state)
{
	begin_trace();
	atomic_fetch_or(&process_state.detours, DETOUR_HOLD);
	for (int i = 0; i < 3; i++)
		launch(fake_stream(2));
	assert_null(fast_path_pass(fake_stream(2)));
	assert_int_equal(trace_sink.next, 3);
	atomic_fetch_and(&process_state.detours, ~(uint32_t)DETOUR_HOLD);
	end_trace();
}

/* Each field where the reader finds it, whatever is beside it. */
static void test_all_bits_of_an_event(void **state)
{
	const struct trace_event all = {
		.begin = 0x8182838485868788,
		.end = 0x9192939495969798,
		.thread = 0xa1a2a3a4,
		.kind = 0xb1,
		.device = 0xb2,
		.code = 0xb3b4,
		.subject = 0xc1c2c3c4c5c6c7c8,
		.object = 0xd1d2d3d4d5d6d7d8,
		.amount = 0xe1e2e3e4e5e6e7e8,
		.extra = 0xf1f2f3f4,
		.flags = 0xf5f6f7f8,
	};
	struct trace_event e;

	begin_trace();
	trace_ring_write(ring, atomic_fetch_add(&ring->next, 1) + 1, &all);
	e = event(1);
	assert_memory_equal(&e, &all, sizeof(e));
	end_trace();
}

static void test_a_wait_at_the_gate(void **state)
{
	struct launcher *l;

	begin_trace();
	fake_process_set_lease(LEASE_STOP);
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	assert_int_equal(trace_sink.next, 0);
	fake_process_set_lease(LEASE_GO);
	join_launcher(l);
	assert_int_equal(trace_sink.next, 2);
	struct trace_event wait = event(1), work = event(2);
	assert_int_equal(wait.kind, TRACE_GATE_WAIT);
	assert_int_equal(wait.amount, TRACE_WAIT_LEASE);
	assert_int_equal(work.kind, TRACE_KERNEL);
	assert_int_equal(work.flags, TRACE_LEASED);
	/* One after the other, in one thread. */
	assert_true(wait.end <= work.begin && wait.begin < wait.end);
	assert_int_equal(wait.thread, work.thread);
	assert_true(wait.thread != (uint32_t)syscall(SYS_gettid));
	end_trace();
}

static void test_memory(void **state)
{
	begin_trace();
	trace_memory(TRACE_ALLOC, 0, 0x7000, 4096);
	trace_memory(TRACE_FREE, -1, 0x7000, 4096); /* of no device of the tenant's */
	assert_int_equal(trace_sink.next, 1);
	struct trace_event e = event(1);
	assert_int_equal(e.kind, TRACE_ALLOC);
	assert_int_equal(e.amount, 4096);
	assert_int_equal(e.begin, e.end);
	end_trace();
}

static void test_what_is_too_old_is_written_over(void **state)
{
	struct trace_event e;
	uint64_t there;

	begin_trace();
	for (uint64_t i = 1; i <= TRACE_EVENTS + 3; i++)
		trace_memory(TRACE_USED, 0, 0, i);
	assert_false(trace_ring_get(ring, 3, &e, &there));
	assert_int_equal(there, TRACE_EVENTS + 3);
	for (uint64_t i = 4; i <= TRACE_EVENTS + 3; i++)
		assert_int_equal(event(i).amount, i);
	end_trace();
}

static void *record_many(void *data)
{
	uint64_t own_number = (uint64_t)(uintptr_t)data;

	for (uint64_t i = 1; i <= EACH; i++)
		trace_memory(TRACE_USED, 0, own_number, i);
	return NULL;
}

/* Every event once, whole, and those of a thread in their order. */
static void test_many_threads(void **state)
{
	pthread_t thread[THREADS];
	uint64_t last[THREADS] = { 0 };

	begin_trace();
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, record_many, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(trace_sink.next, THREADS * EACH);
	for (uint64_t n = 1; n <= THREADS * EACH; n++) {
		struct trace_event e = event(n);
		assert_true(e.subject < THREADS);
		assert_int_equal(e.amount, ++last[e.subject]);
	}
	end_trace();
}

static void test_names_have_an_end(void **state)
{
	char text[2 * TRACE_NAME_MAX];

	begin_trace();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	trace_put_name(TRACE_NAMES_FUNCTION, 1, 0, text);
	assert_int_equal(strlen(ring->name[0].text), TRACE_NAME_MAX - 1);
	for (uint64_t i = 0; i < TRACE_NAMES + 10; i++)
		trace_put_name(TRACE_NAMES_FUNCTION, i, 0, "f");
	assert_int_equal(ring->name_count, TRACE_NAMES);
	end_trace();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		launching_test(test_a_launch),
		launching_test(test_a_crowded_table_of_names),
		launching_test(test_a_refused_launch),
		launching_test(test_without_a_tracer),
		launching_test(test_by_the_fast_path),
		launching_test(test_the_device_of_the_legacy_stream),
		launching_test(test_threads_after_each_other),
		launching_test(test_a_swappable_process_has_no_fast_path),
		launching_test(test_all_bits_of_an_event),
		launching_test(test_a_wait_at_the_gate),
		launching_test(test_memory),
		launching_test(test_what_is_too_old_is_written_over),
		launching_test(test_many_threads),
		launching_test(test_names_have_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
