/* Predictions: by function and shape, by size class; learned from samples; a full table recycles. */
#include "test.h"

#include "interpose/estimate.h"

static struct work kernel(uintptr_t function, uint64_t blocks, uint64_t threads)
{
	return (struct work){
		.kind = WORK_IS_KERNEL,
		.subject = (const void *)function,
		.blocks = blocks,
		.threads = threads,
	};
}

static struct work copy(const char *entry, uint64_t bytes)
{
	return (struct work){ .kind = WORK_IS_COPY, .subject = entry, .blocks = bytes };
}

static void test_one_entry_for_one_shape(void **state)
{
	struct work a = kernel(0x1000, 132, 256), b = kernel(0x1000, 133, 256);
	struct work c = kernel(0x1000, 132, 128), d = kernel(0x2000, 132, 256);
	struct work g = { .kind = WORK_IS_GRAPH, .subject = (const void *)0x1000 };

	assert_non_null(estimate_of(&a));
	assert_ptr_equal(estimate_of(&a), estimate_of(&a));
	assert_ptr_not_equal(estimate_of(&a), estimate_of(&b));
	assert_ptr_not_equal(estimate_of(&a), estimate_of(&c));
	assert_ptr_not_equal(estimate_of(&a), estimate_of(&d));
	assert_ptr_not_equal(estimate_of(&a), estimate_of(&g));
	/* The stream plays no part. */
	struct work e = a;
	e.stream = (CUstream)0x77;
	assert_ptr_equal(estimate_of(&a), estimate_of(&e));
}

static void test_copies_by_size_class(void **state)
{
	struct work a = copy("x", 1025), b = copy("x", 2047), c = copy("x", 2048), d = copy("x", 0);

	assert_ptr_equal(estimate_of(&a), estimate_of(&b));
	assert_ptr_not_equal(estimate_of(&a), estimate_of(&c));
	assert_ptr_not_equal(estimate_of(&a), estimate_of(&d));
}

static void test_learns(void **state)
{
	struct work w = kernel(0x3000, 1, 1);
	struct estimate *e = estimate_of(&w);
	uint64_t key = e->key;

	assert_int_equal(e->ns, 0);
	estimate_learn(e, key, 0);
	assert_int_equal(e->ns, 1); /* known, and not 0 */
	e->ns = 0;
	estimate_learn(e, key, 1000000);
	assert_int_equal(e->ns, 1000000);
	estimate_learn(e, key, 2000000);
	assert_int_equal(e->ns, 1250000);
	for (int i = 0; i < 40; i++)
		estimate_learn(e, key, 2000000);
	assert_in_range(e->ns, 1990000, 2000000);
	/* A sample of what stood here before is not this one's. */
	estimate_learn(e, key + 1, 5);
	assert_in_range(e->ns, 1990000, 2000000);
}

static void test_samples_the_first_and_then_some(void **state)
{
	struct work w = kernel(0x4000, 1, 1);
	struct estimate *e = estimate_of(&w);
	unsigned wanted = 0;

	/* As long as nothing is known, always: a stream times one at a time, so most get no sample. */
	for (unsigned i = 0; i < 100; i++)
		assert_true(estimate_wants_sample(e));
	estimate_learn(e, e->key, 1000);
	for (unsigned i = 0; i < 6400; i++)
		wanted += estimate_wants_sample(e);
	assert_in_range(wanted, 99, 101);
}

static void test_a_full_table_recycles(void **state)
{
	struct work often = kernel(0x5000, 7, 7);
	struct estimate *e = estimate_of(&often);

	for (unsigned i = 0; i < 1000; i++)
		estimate_wants_sample(e);
	estimate_learn(e, e->key, 12345);
	for (uintptr_t i = 1; i < 100000; i++) {
		struct work w = kernel(0x100000 + i * 64, i, 1);
		assert_non_null(estimate_of(&w));
	}
	/* What is used much is still there, and known. */
	assert_ptr_equal(estimate_of(&often), e);
	assert_int_equal(e->ns, 12345);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_entry_for_one_shape),
		cmocka_unit_test(test_copies_by_size_class),
		cmocka_unit_test(test_learns),
		cmocka_unit_test(test_samples_the_first_and_then_some),
		cmocka_unit_test(test_a_full_table_recycles),
	};

	return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}
