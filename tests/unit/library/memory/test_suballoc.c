/*
 * Small linear memory: suballocations of 2 MiB chunks. A chunk is charged from its first suballocation to its last, because the
 * driver allocates no less. While there are any, one more chunk may be charged ahead.
 */
#include "../test.h"

#include <pthread.h>

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/entry/hooks.h"
#include "library/memory/holding.h"

#define CHUNK (2 * MIB)
#define FIRST 0x7f0000000000ULL

static CUdeviceptr next;
static CUresult driver_result;
static uint64_t used_in_call;

static CUresult alloc(CUdeviceptr *ptr, size_t bytes)
{
	used_in_call = fake_process_used();
	*ptr = next;
	return driver_result;
}

static CUresult alloc_pitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	*pitch = width;
	return alloc(ptr, width * height);
}

static CUresult release(CUdeviceptr ptr)
{
	used_in_call = fake_process_used();
	return driver_result;
}

static int start(void **state)
{
	ptrmap_reset();
	suballoc_reset();
	fake_driver_start();
	fake_process_start(1);
	real.cuMemFree_v2 = release;
	driver_result = CUDA_SUCCESS;
	return 0;
}

static CUresult make_at(CUdeviceptr at, size_t bytes)
{
	CUdeviceptr ptr;

	next = at;
	return hook_mem_alloc(alloc, &ptr, bytes);
}

/* The charge without the part that is charged ahead. */
static uint64_t used(void)
{
	suballoc_drain(0);
	return fake_process_used();
}

static void test_a_chunk_is_charged_once(void **state)
{
	assert_int_equal(make_at(FIRST, 1), CUDA_SUCCESS);
	assert_int_equal(used_in_call, CHUNK);
	assert_int_equal(fake_process_used(), CHUNK);
	assert_int_equal(make_at(FIRST + 512, MIB), CUDA_SUCCESS);
	assert_int_equal(used_in_call, 2 * CHUNK); /* it might have been a new one */
	assert_int_equal(used(), CHUNK);
	assert_int_equal(make_at(FIRST + CHUNK, 512), CUDA_SUCCESS);
	assert_int_equal(used_in_call, 2 * CHUNK);
	assert_int_equal(used(), 2 * CHUNK);

	/* To the last suballocation. */
	assert_int_equal(hook_mem_free(release, FIRST), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 2 * CHUNK);
	assert_int_equal(hook_mem_free(release, FIRST + 512), CUDA_SUCCESS);
	assert_int_equal(used_in_call, 2 * CHUNK);
	assert_int_equal(fake_process_used(), CHUNK);
	assert_int_equal(hook_mem_free(release, FIRST + CHUNK), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

/* Reserved once for any number of suballocations of a chunk that is there, and gone with the last of them. */
static void test_a_spare_is_kept_ahead(void **state)
{
	assert_int_equal(make_at(FIRST, 512), CUDA_SUCCESS);
	for (unsigned i = 1; i < 100; i++) {
		assert_int_equal(make_at(FIRST + i * 512, 512), CUDA_SUCCESS);
		assert_int_equal(used_in_call, 2 * CHUNK);
		assert_int_equal(fake_process_used(), 2 * CHUNK);
	}
	/* It is the charge of the next chunk. */
	assert_int_equal(make_at(FIRST + CHUNK, 512), CUDA_SUCCESS);
	assert_int_equal(used_in_call, 2 * CHUNK);
	assert_int_equal(fake_process_used(), 2 * CHUNK);
	driver_result = CUDA_ERROR_UNKNOWN;
	assert_int_equal(make_at(FIRST + CHUNK, 512), CUDA_ERROR_UNKNOWN);
	assert_int_equal(fake_process_used(), 3 * CHUNK);
	driver_result = CUDA_SUCCESS;
	assert_int_equal(hook_mem_free(release, FIRST + CHUNK), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 2 * CHUNK);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(hook_mem_free(release, FIRST + i * 512), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

/* Nothing else is refused for it. */
static void test_a_spare_makes_room(void **state)
{
	fake_control->device[0].quota_bytes = 4 * CHUNK;
	assert_int_equal(make_at(FIRST, 512), CUDA_SUCCESS);
	assert_int_equal(make_at(FIRST + 512, 512), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 2 * CHUNK);
	assert_int_equal(make_at(FIRST + 8 * CHUNK, 3 * CHUNK), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 4 * CHUNK);
	/* And without one, a suballocation may need a chunk that there is no room for. */
	assert_int_equal(make_at(FIRST + 1024, 512), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fake_control->device[0].quota_bytes, fake_process_used());
}

/* The helper frees the chunk that no thread has used between two of its passes. */
static void test_a_spare_rests(void **state)
{
	uint64_t now_ns = sys_now_ns();

	assert_int_equal(make_at(FIRST, 512), CUDA_SUCCESS);
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(make_at(FIRST + i * 512, 512), CUDA_SUCCESS);
	suballoc_trim(now_ns += NS_PER_S);
	assert_int_equal(fake_process_used(), 2 * CHUNK);
	suballoc_trim(now_ns + NS_PER_MS); /* too early to decide */
	assert_int_equal(fake_process_used(), 2 * CHUNK);
	suballoc_trim(now_ns + NS_PER_S);
	assert_int_equal(fake_process_used(), CHUNK);
}

/* An address that no table is for: charged by itself. */
static void test_far_off(void **state)
{
	const CUdeviceptr far_off = 1ULL << 56;

	assert_int_equal(make_at(far_off, 512), CUDA_SUCCESS);
	assert_int_equal(make_at(far_off + 512, 512), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 2 * CHUNK);
	assert_int_equal(hook_mem_free(release, far_off), CUDA_SUCCESS);
	assert_int_equal(hook_mem_free(release, far_off + 512), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

/* Of 1.6 MB, two chunks hold one each and small ones beside. */
static void test_suballocs_of_more_than_half(void **state)
{
	assert_int_equal(make_at(FIRST, 1600000), CUDA_SUCCESS);
	assert_int_equal(make_at(FIRST + 1600000 / 512 * 512 + 512, 512), CUDA_SUCCESS);
	assert_int_equal(used(), CHUNK);
	assert_int_equal(make_at(FIRST + CHUNK + 400384, 1600000), CUDA_SUCCESS);
	assert_int_equal(used(), 2 * CHUNK);
	assert_int_equal(hook_mem_free(release, FIRST), CUDA_SUCCESS);
	assert_int_equal(used(), 2 * CHUNK);
	assert_int_equal(hook_mem_free(release, FIRST + 1600000 / 512 * 512 + 512), CUDA_SUCCESS);
	assert_int_equal(hook_mem_free(release, FIRST + CHUNK + 400384), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

static void test_above_it_is_whole_pages(void **state)
{
	assert_int_equal(make_at(FIRST, CHUNK), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), CHUNK);
	assert_int_equal(make_at(FIRST + CHUNK, CHUNK + 1), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 3 * CHUNK);
	assert_int_equal(hook_mem_free(release, FIRST), CUDA_SUCCESS);
	assert_int_equal(hook_mem_free(release, FIRST + CHUNK), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

static void test_refused_and_failed(void **state)
{
	driver_result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(make_at(FIRST, 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake_process_used(), 0);
	driver_result = CUDA_SUCCESS;
	fake_control->device[0].quota_bytes = CHUNK - 1;
	assert_int_equal(make_at(FIRST, 512), CUDA_ERROR_OUT_OF_MEMORY);
	fake_control->device[0].quota_bytes = CHUNK;
	assert_int_equal(make_at(FIRST, 512), CUDA_SUCCESS);
	driver_result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(hook_mem_free(release, FIRST), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake_process_used(), CHUNK);
	driver_result = CUDA_SUCCESS;
	assert_int_equal(hook_mem_free(release, FIRST), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

/* A pitch that the driver chooses turns a reservation for pages into a suballocation, or the other way. */
static void test_pitched(void **state)
{
	CUdeviceptr ptr;
	size_t pitch;

	next = FIRST;
	assert_int_equal(hook_mem_alloc_pitch(alloc_pitch, &ptr, &pitch, 100, 4096, 4),
			 CUDA_SUCCESS);
	assert_int_equal(used_in_call, CHUNK);
	assert_int_equal(fake_process_used(), CHUNK);
	assert_int_equal(make_at(FIRST + MIB, 512), CUDA_SUCCESS);
	assert_int_equal(used(), CHUNK);
	assert_int_equal(hook_mem_free(release, ptr), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), CHUNK);
	assert_int_equal(hook_mem_free(release, FIRST + MIB), CUDA_SUCCESS);
	assert_int_equal(fake_process_used(), 0);
}

/* Far apart and in turn: each lookup uses another table than the one before. */
static void test_far_from_each_other(void **state)
{
	const CUdeviceptr far = FIRST + (64ULL << 30);

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(make_at(FIRST + i * 512, 512), CUDA_SUCCESS);
		assert_int_equal(make_at(far + i * 512, 512), CUDA_SUCCESS);
	}
	assert_int_equal(used(), 2 * CHUNK);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(hook_mem_free(release, FIRST + i * 512), CUDA_SUCCESS);
		assert_int_equal(hook_mem_free(release, far + i * 512), CUDA_SUCCESS);
	}
	assert_int_equal(used(), 2 * CHUNK);
	assert_int_equal(hook_mem_free(release, FIRST + 1024), CUDA_SUCCESS);
	assert_int_equal(used(), CHUNK);
	/* Freed twice by mistake: not counted. */
	assert_int_equal(hook_mem_free(release, FIRST + 1024), CUDA_SUCCESS);
	assert_int_equal(used(), CHUNK);
	assert_int_equal(hook_mem_free(release, far + 1024), CUDA_SUCCESS);
	assert_int_equal(used(), 0);
}

static void test_freed_with_its_context(void **state)
{
	assert_int_equal(make_at(FIRST, 512), CUDA_SUCCESS);
	assert_int_equal(make_at(FIRST + 512, 512), CUDA_SUCCESS);
	assert_int_equal(make_at(FIRST + CHUNK, 3 * MIB), CUDA_SUCCESS);
	assert_int_equal(used(), 3 * CHUNK);
	CUcontext context;
	real.cuCtxGetCurrent(&context);
	charge_context_gone(context);
	assert_int_equal(fake_process_used(), 0);
}

/* Each thread's suballocations lie among the others', in 4 chunks: in the end nothing is charged. */
#define THREADS 4
#define TURNS 20000

static CUdeviceptr thread_next(unsigned thread, unsigned turn)
{
	return FIRST + (turn % 4) * CHUNK + thread * 512;
}

static _Thread_local CUdeviceptr own_next;

static CUresult alloc_own(CUdeviceptr *ptr, size_t bytes)
{
	*ptr = own_next;
	return CUDA_SUCCESS;
}

static CUresult release_own(CUdeviceptr ptr)
{
	return CUDA_SUCCESS;
}

static void *hammer(void *data)
{
	unsigned thread = (unsigned)(uintptr_t)data;

	for (unsigned turn = 0; turn < TURNS; turn++) {
		CUdeviceptr ptr;
		own_next = thread_next(thread, turn);
		if (hook_mem_alloc(alloc_own, &ptr, 512) != CUDA_SUCCESS ||
		    hook_mem_free(release_own, ptr) != CUDA_SUCCESS)
			return data;
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	void *failed;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(fake_process_used(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_chunk_is_charged_once, start),
		cmocka_unit_test_setup(test_a_spare_is_kept_ahead, start),
		cmocka_unit_test_setup(test_a_spare_makes_room, start),
		cmocka_unit_test_setup(test_a_spare_rests, start),
		cmocka_unit_test_setup(test_far_off, start),
		cmocka_unit_test_setup(test_suballocs_of_more_than_half, start),
		cmocka_unit_test_setup(test_above_it_is_whole_pages, start),
		cmocka_unit_test_setup(test_refused_and_failed, start),
		cmocka_unit_test_setup(test_pitched, start),
		cmocka_unit_test_setup(test_far_from_each_other, start),
		cmocka_unit_test_setup(test_freed_with_its_context, start),
		cmocka_unit_test_setup(test_threads, start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
