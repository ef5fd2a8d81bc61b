/* Predictions: by function and shape, by size class; learned from samples; a full table recycles. */
#include "../../test.h"

#include "library/launch/inflight/estimate.h"

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

static struct estimate *known_as(uintptr_t function, uint64_t ns)
{
	struct work w = kernel(function, 1, 1);
	struct estimate *e = estimate_of(&w);

	for (int i = 0; i < 4; i++)
		estimate_learn(e, e->key, ns);
	assert_int_equal(e->ns, ns);
	return e;
}

static void test_learns(void **state)
{
	struct work w = kernel(0x3000, 1, 1);
	struct estimate *e = estimate_of(&w);

	assert_int_equal(e->ns, 0);
	estimate_learn(e, e->key, 0);
	assert_int_equal(e->ns, 1); /* known, and not 0 */

	e = known_as(0x3100, 1000000);
	for (int i = 0; i < 40; i++)
		estimate_learn(e, e->key, 1400000);
	assert_in_range(e->ns, 1390000, 1400000);
	/* A sample of the former entry in this place does not count for this one. */
	estimate_learn(e, e->key + 1, 5);
	assert_in_range(e->ns, 1390000, 1400000);
}

static void test_one_long_sample_changes_nothing(void **state)
{
	struct work w = kernel(0x3200, 1, 1);
	struct estimate *e = estimate_of(&w);

	/* The first launch loads the code. */
	estimate_learn(e, e->key, 30000000);
	estimate_learn(e, e->key, 10000);
	assert_int_equal(e->ns, 10000);
	for (int i = 1; i < 100; i++) {
		estimate_learn(e, e->key, i % 5 ? 10000 : 5000000);
		assert_int_equal(e->ns, 10000);
	}
}

static void test_a_lasting_change_is_taken_up(void **state)
{
	struct estimate *e = known_as(0x3300, 1000);

	estimate_learn(e, e->key, 5000000);
	assert_int_equal(e->ns, 1000);
	estimate_learn(e, e->key, 5000000);
	assert_int_equal(e->ns, 5000000);
	estimate_learn(e, e->key, 1000);
	estimate_learn(e, e->key, 1000);
	assert_int_equal(e->ns, 1000);
}

static void test_two_lengths_give_their_mean(void **state)
{
	struct estimate *e = known_as(0x3400, 1000000);
	uint64_t sum = 0;

	for (int i = 0; i < 100; i++) {
		estimate_learn(e, e->key, i % 2 ? 1000000 : 1900000);
		sum += e->ns;
	}
	assert_in_range(sum / 100, 1350000, 1550000);
}

static unsigned samples_wanted(struct estimate *e, unsigned uses)
{
	unsigned wanted = 0;

	for (unsigned i = 0; i < uses; i++)
		wanted += estimate_wants_sample(e);
	return wanted;
}

/* Layers of several lengths under one key: each sample is far from the estimate. */
static void test_lengths_that_vary_are_timed_seldom(void **state)
{
	struct estimate *e = known_as(0x4200, 300000);
	unsigned wanted = 0;

	for (int i = 0; i < 6400; i++)
		if (estimate_wants_sample(e)) {
			wanted++;
			estimate_learn(e, e->key, wanted % 2 ? 1000000 : 300000);
		}
	assert_in_range(wanted, 100, 120);
}

static void test_samples_the_first_and_then_some(void **state)
{
	struct work w = kernel(0x4000, 1, 1);
	struct estimate *e = estimate_of(&w);

	/* While few samples have come back, each launch asks for one: a stream times few at once, so most get none. */
	assert_int_equal(samples_wanted(e, 100), 100);
	for (int i = 0; i < 4; i++)
		estimate_learn(e, e->key, 1000);
	assert_in_range(samples_wanted(e, 6400), 99, 101);
	/* After a surprise, soon again until it is confirmed or not: a long sample counts at once. */
	estimate_learn(e, e->key, 9000);
	assert_in_range(samples_wanted(e, 80), 9, 11);
	estimate_learn(e, e->key, 1000);
	estimate_learn(e, e->key, 1000);
	assert_in_range(samples_wanted(e, 64), 1, 1);
}

static void test_what_is_long_is_looked_into_at_once(void **state)
{
	struct estimate *e = known_as(0x4100, 1000000);

	estimate_learn(e, e->key, 9000000);
	assert_int_equal(samples_wanted(e, 10), 10);
	estimate_learn(e, e->key, 1000000);
	estimate_learn(e, e->key, 1000000);
	assert_in_range(samples_wanted(e, 64), 1, 1);
}

/* Beside others' work it takes any time: never less than alone, which is to be found out alone. */
static void test_beside_others_it_is_a_bound(void **state)
{
	struct work w = kernel(0x7000, 11, 11);
	struct estimate *e = estimate_of(&w);

	assert_true(estimate_wants_bound(e));
	estimate_learn_concurrent(e, e->key, 300000);
	assert_int_equal(e->ns, 300000);
	estimate_learn_concurrent(e, e->key, 120000);
	assert_int_equal(e->ns, 120000);
	for (int i = 0; i < 100; i++)
		estimate_learn_concurrent(e, e->key, 300000);
	assert_int_equal(e->ns, 120000);
	estimate_learn_concurrent(e, e->key + 1, 1);
	assert_int_equal(e->ns, 120000);
	/* It asks for samples, which are taken alone, and believed whichever way they go. */
	for (int i = 0; i < 63; i++)
		assert_false(estimate_wants_bound(e));
	assert_true(samples_wanted(e, 32) > 2);
	for (int i = 0; i < 6; i++)
		estimate_learn(e, e->key, 100000);
	assert_in_range(e->ns, 100000, 106000);
}

/* However it is timed later, beside its own streams or alone, longer or shorter: within a factor of 16 it counts for the same. */
static void test_a_known_length_stays(void **state)
{
	static const uint64_t later[] = { 1800000, 600000, 8000000, 9000000,
					  9000000, 200000, 300000,  200000 };
	struct work w = kernel(0x7100, 11, 11);
	struct estimate *e = estimate_of(&w);
	uint64_t stable;

	assert_int_equal(estimate_stable_ns(e), 0);
	estimate_learn_concurrent(e, e->key, 1700000);
	assert_true(estimate_is_untried(e));
	assert_int_equal(estimate_stable_ns(e), 1700000);
	estimate_learn(e, e->key, 1000000);
	estimate_learn(e, e->key, 1030000);
	assert_true(estimate_is_untried(e));
	/* Of three the median, whatever was known before. */
	estimate_learn(e, e->key, 1010000);
	assert_false(estimate_is_untried(e));
	stable = estimate_stable_ns(e);
	assert_int_equal(stable, 1010000);
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		estimate_learn(e, e->key, later[i]);
		estimate_learn_concurrent(e, e->key, later[i] - 100000);
		assert_int_equal(estimate_stable_ns(e), stable);
	}
	/* It does something else now. */
	for (int i = 0; i < 20; i++)
		estimate_learn(e, e->key, 25000000);
	assert_in_range(estimate_stable_ns(e), 16000000, 25000000);
}

/*
 * Events at each launch would slow down the kernels that they time. A length that depends on other work is no reason for more.
 */
static void test_a_known_length_is_seldom_timed_again(void **state)
{
	struct work w = kernel(0x5800, 1, 1);
	struct estimate *e = estimate_of(&w);
	unsigned wanted = 0;

	for (int i = 0; i < 3; i++) {
		assert_true(estimate_wants_stable_sample(e));
		estimate_learn(e, e->key, 1000000);
	}
	for (int i = 0; i < 6400; i++) {
		if (!estimate_wants_stable_sample(e))
			continue;
		estimate_learn(e, e->key, wanted++ % 2 ? 1000000 : 4000000);
	}
	assert_in_range(wanted, 99, 101);
	assert_int_equal(estimate_stable_ns(e), 1000000);
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
	/* An entry that is used much is still there, and its length known. */
	assert_ptr_equal(estimate_of(&often), e);
	assert_int_equal(e->ns, 12345);
}

/* Runs first, with an empty table. Unknown work is paid for like the mean of other entries, however long it is. */
static void test_an_unknown_length_is_charged_as_others(void **state)
{
	struct work unknown = kernel(0x9300, 1, 1), often = kernel(0x9100, 1, 1);
	struct estimate *e = estimate_of(&unknown);

	estimate_learn_concurrent(e, e->key, 50000000);
	assert_int_equal(estimate_paid_ns(e), 0);
	for (int i = 0; i < 3; i++)
		estimate_wants_bound(estimate_of(&often));
	known_as(0x9100, 10000);
	assert_int_equal(estimate_paid_ns(e), 10000);
	estimate_wants_bound(estimate_of(&(struct work){
		.kind = WORK_IS_KERNEL, .subject = (void *)0x9200, .blocks = 1, .threads = 1 }));
	known_as(0x9200, 50000);
	assert_int_equal(estimate_paid_ns(e), 20000);
	assert_int_equal(estimate_paid_ns(estimate_of(&often)), 10000);
	/* The prediction of work in flight may still change. */
	assert_int_equal(estimate_stable_ns(e), 50000000);
	for (int i = 0; i < 3; i++)
		estimate_learn(e, e->key, 1000);
	assert_int_equal(estimate_paid_ns(e), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_unknown_length_is_charged_as_others),
		cmocka_unit_test(test_one_entry_for_one_shape),
		cmocka_unit_test(test_copies_by_size_class),
		cmocka_unit_test(test_learns),
		cmocka_unit_test(test_one_long_sample_changes_nothing),
		cmocka_unit_test(test_a_lasting_change_is_taken_up),
		cmocka_unit_test(test_two_lengths_give_their_mean),
		cmocka_unit_test(test_lengths_that_vary_are_timed_seldom),
		cmocka_unit_test(test_samples_the_first_and_then_some),
		cmocka_unit_test(test_what_is_long_is_looked_into_at_once),
		cmocka_unit_test(test_beside_others_it_is_a_bound),
		cmocka_unit_test(test_a_known_length_stays),
		cmocka_unit_test(test_a_known_length_is_seldom_timed_again),
		cmocka_unit_test(test_a_full_table_recycles),
	};

	return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}
