/*
 * What a free costs with 100,000 live allocations against 100: as the program sees it, with a driver
 * that takes a microsecond (no real one is so fast), at most twice as much. And the library's own part
 * alone: there the one line of the map that isn't in the caches shows, and no more may.
 */
#include "test.h"

#include "fake_driver.h"
#include "fake_guest.h"
#include "interpose/hooks.h"

#define SAMPLES 2001
#define BATCH 10

static CUdeviceptr next_pointer = 0x7f0000000000;

static CUresult alloc_nothing(CUdeviceptr *ptr, size_t bytes)
{
	next_pointer += 0x200000;
	*ptr = next_pointer;
	return CUDA_SUCCESS;
}

static CUresult free_nothing(CUdeviceptr ptr)
{
	return CUDA_SUCCESS;
}

static CUresult free_in_a_microsecond(CUdeviceptr ptr)
{
	uint64_t start = sys_now_ns();

	while (sys_now_ns() - start < NS_PER_US)
		;
	return CUDA_SUCCESS;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Median nanoseconds of freeing ten random ones of `live`; they are allocated again in between. */
static uint64_t median_of_batch(unsigned live, CUresult (*driver_free)(CUdeviceptr))
{
	static CUdeviceptr pointers[100000];
	static uint64_t took[SAMPLES];
	uint64_t random = live;

	for (unsigned i = 0; i < live; i++)
		assert_int_equal(hook_mem_alloc(alloc_nothing, &pointers[i], 512), CUDA_SUCCESS);
	for (unsigned n = 0; n < SAMPLES; n++) {
		unsigned pick[BATCH], first = (unsigned)(test_random(&random) % live);
		CUdeviceptr chosen[BATCH]; /* copied: our own cache misses are not the library's */
		/* Ten different ones, far apart. */
		for (unsigned k = 0; k < BATCH; k++) {
			pick[k] = (first + k * (live / BATCH)) % live;
			chosen[k] = pointers[pick[k]];
		}
		uint64_t start = sys_now_ns();
		for (unsigned k = 0; k < BATCH; k++)
			hook_mem_free(driver_free, chosen[k]);
		took[n] = sys_now_ns() - start;
		for (unsigned k = 0; k < BATCH; k++)
			hook_mem_alloc(alloc_nothing, &pointers[pick[k]], 512);
	}
	assert_int_equal(fake_guest_used(), live * 512ULL);
	for (unsigned i = 0; i < live; i++)
		hook_mem_free(free_nothing, pointers[i]);
	assert_int_equal(fake_guest_used(), 0);
	qsort(took, SAMPLES, sizeof(took[0]), compare_u64);
	return took[SAMPLES / 2];
}

static double best_ratio(const char *what, CUresult (*driver_free)(CUdeviceptr))
{
	double best = 1e9;

	fake_driver_start();
	fake_guest_start(1);
	for (unsigned try = 0; try < 7; try++) {
		uint64_t few = median_of_batch(100, driver_free);
		uint64_t many = median_of_batch(100000, driver_free);
		double ratio = (double)many / (double)few;
		print_message("%s: %.1f ns with 100 live, %.1f ns with 100,000: %.2f\n", what,
			      (double)few / BATCH, (double)many / BATCH, ratio);
		best = ratio < best ? ratio : best;
	}
	return best;
}

static void test_free_costs_the_same_with_many(void **state)
{
	assert_true(best_ratio("free", free_in_a_microsecond) <= 2.0);
}

static void test_own_part_grows_by_a_cache_miss(void **state)
{
	assert_true(best_ratio("own part of a free", free_nothing) <= 3.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_costs_the_same_with_many),
		cmocka_unit_test(test_own_part_grows_by_a_cache_miss),
	};

	return cmocka_run_group_tests_name("free_cost", tests, NULL, NULL);
}
