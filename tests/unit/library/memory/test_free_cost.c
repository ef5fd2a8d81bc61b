/*
 * The cost of a free with 100,000 live allocations, compared with 100: at most twice as much. Measured as the program sees it,
 * with a driver that needs a microsecond (real ones are slower), and for the library's own part alone, with 512 bytes and with
 * 2 MiB.
 */
#include "../test.h"

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/entry/hooks.h"

#define SAMPLES 2001
#define ROUNDS 7
#define BATCH 10
#define FEW 100
#define MANY 100000

static CUdeviceptr next_pointer = 0x7f0000000000;

/* As a driver does: in a row, on boundaries of 512 bytes or of 2 MiB. */
static CUresult alloc_nothing(CUdeviceptr *ptr, size_t bytes)
{
	*ptr = (next_pointer + bytes - 1) / bytes * bytes;
	next_pointer = *ptr + bytes;
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

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median nanoseconds of freeing ten of `live`, far apart; they are allocated again in between. */
static uint64_t median_of_batch(unsigned live, size_t bytes, CUresult (*driver_free)(CUdeviceptr))
{
	static CUdeviceptr pointers[MANY];
	static uint64_t took[SAMPLES];
	uint64_t random = live;

	for (unsigned i = 0; i < live; i++)
		assert_int_equal(hook_mem_alloc(alloc_nothing, &pointers[i], bytes), CUDA_SUCCESS);
	for (unsigned n = 0; n < SAMPLES; n++) {
		unsigned pick[BATCH], first = (unsigned)(test_random(&random) % live);
		CUdeviceptr chosen[BATCH]; /* copied: our own cache misses are not the library's */
		for (unsigned k = 0; k < BATCH; k++) {
			pick[k] = (first + k * (live / BATCH)) % live;
			chosen[k] = pointers[pick[k]];
		}
		uint64_t start = sys_now_ns();
		for (unsigned k = 0; k < BATCH; k++)
			hook_mem_free(driver_free, chosen[k]);
		took[n] = sys_now_ns() - start;
		for (unsigned k = 0; k < BATCH; k++)
			hook_mem_alloc(alloc_nothing, &pointers[pick[k]], bytes);
	}
	/* In chunks of 2 MiB, which repeated allocations need not fill. */
	assert_true(fake_process_used() >= live * bytes);
	for (unsigned i = 0; i < live; i++)
		hook_mem_free(free_nothing, pointers[i]);
	assert_int_equal(fake_process_used(), 0);
	qsort(took, SAMPLES, sizeof(took[0]), compare_u64);
	return took[SAMPLES / 2];
}

static double median_ratio(size_t bytes, CUresult (*driver_free)(CUdeviceptr))
{
	double ratios[ROUNDS];

	fake_driver_start();
	fake_process_start(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t few = median_of_batch(FEW, bytes, driver_free);
		uint64_t many = median_of_batch(MANY, bytes, driver_free);
		ratios[round] = (double)many / (double)few;
		print_message("of %zu bytes: %.1f ns with 100 live, %.1f ns with 100,000: %.2f\n",
			      bytes, (double)few / BATCH, (double)many / BATCH, ratios[round]);
	}
	qsort(ratios, ROUNDS, sizeof(ratios[0]), compare_double);
	return ratios[ROUNDS / 2];
}

static void test_free_costs_the_same_with_many(void **state)
{
	assert_true(median_ratio(512, free_in_a_microsecond) <= 2.0);
	assert_true(median_ratio(64 << 10, free_in_a_microsecond) <= 2.0);
	assert_true(median_ratio(2 << 20, free_in_a_microsecond) <= 2.0);
}

static void test_own_part_of_small(void **state)
{
	assert_true(median_ratio(512, free_nothing) <= 2.0);
	assert_true(median_ratio(64 << 10, free_nothing) <= 2.0);
}

/* A note each, of which 100,000 are more than a cache that others use too: a search would be a thousandfold. */
static void test_own_part_of_large(void **state)
{
	assert_true(median_ratio(2 << 20, free_nothing) <= 5.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_costs_the_same_with_many),
		cmocka_unit_test(test_own_part_of_small),
		cmocka_unit_test(test_own_part_of_large),
	};

	return cmocka_run_group_tests_name("free_cost", tests, NULL, NULL);
}
