/* Single rules of space.h, with members whose progress the test sets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/space/space.h"

#define MS UINT64_C(1000000)

static uint64_t now = 1000 * MS;

/* Samples each ms for this long: the members report this much per ns, of which `untried` was never timed alone. */
static void look(struct mps_client *m, struct mps_client_observation *s, uint64_t for_ms,
		 double told, double untried)
{
	s->is_counted = s->works = true;
	for (uint64_t i = 0; i < for_ms; i++) {
		now += MS;
		s->reported_work_ns += (uint64_t)(told * (double)MS);
		s->untried_ns += (uint64_t)(told * untried * (double)MS);
		s->busy_ns = s->wanted_ns = (double)MS;
		mps_client_observe(m, s, now, MS);
		space_set_paces(&m, 1, MS);
	}
}

static void test_speed_is_learned_alone_only(void **state)
{
	struct mps_client m = { .guarantee = 0.5, .least = 0.5 };
	struct mps_client_observation s = { 0 };

	look(&m, &s, 2000, 3, 0);
	assert_false(mps_client_is_known(&m));
	assert_true(mps_client_speed(&m) == 1);
	assert_true(mps_client_learns(&m));
	/* It is not rounded up to 2^64, which has no uint64_t. */
	assert_int_equal(mps_client_work_ns(&m, UINT64_MAX), UINT64_MAX);
	s.is_alone = true;
	look(&m, &s, 300, 3, 0);
	assert_true(mps_client_is_known(&m));
	assert_true(fabs(mps_client_speed(&m) - 3) < 0.02);
	/* It is kept while others are there. */
	s.is_alone = false;
	look(&m, &s, 2000, 1.5, 0);
	assert_true(fabs(mps_client_speed(&m) - 3) < 0.02);
	assert_true(fabs(mps_client_share(&m) - 0.5) < 0.02);
	assert_in_range(mps_client_reported_work_ns(&m, 1000), 2980, 3020);
	assert_in_range(mps_client_work_ns(&m, 3000), 990, 1010);
	/* And is that of the last second. */
	s.is_alone = true;
	look(&m, &s, 5000, 6, 0);
	assert_true(fabs(mps_client_speed(&m) - 6) < 0.1);
	assert_false(mps_client_learns(&m));
}

/* As long as many lengths were never timed alone, nothing is learned, and nothing measured. */
static void test_untried_lengths_say_nothing(void **state)
{
	struct mps_client m = { .guarantee = 0.5, .least = 0.5 };
	struct mps_client_observation s = { .is_alone = true };

	look(&m, &s, 3000, 2, 0.3);
	assert_false(mps_client_is_known(&m));
	look(&m, &s, 3000, 1, 0.02);
	assert_true(mps_client_is_known(&m));
	assert_true(fabs(mps_client_speed(&m) - 1) < 0.02);
	s.is_alone = false;
	look(&m, &s, 1000, 0.2, 0.02);
	assert_true(m.is_below);
	look(&m, &s, 1000, 0.2, 0.3);
	assert_false(m.is_below);
	/* More than the total of which it is a part: a false report. */
	look(&m, &s, 100, 0.2, 1e6);
	assert_true(m.begun_untried_ns <= m.begun_ns);
}

/* Part of the SMs: alone it has that part of the card. */
static void test_a_part_of_the_card(void **state)
{
	struct mps_client m = { .guarantee = 0.3, .least = 0.3, .part = 0.3 };
	struct mps_client_observation s = { .is_alone = true };

	look(&m, &s, 1000, 2, 0);
	assert_true(fabs(mps_client_share(&m) - 0.3) < 0.01);
	assert_false(m.is_below);
	s.is_alone = false;
	look(&m, &s, 1000, 1, 0);
	assert_true(fabs(mps_client_share(&m) - 0.15) < 0.01);
	assert_true(m.is_below);
}

/* A kernel of 400 ms: at its end it is seen that it had its share, and not before. */
static void test_long_work_is_not_missed(void **state)
{
	struct mps_client m = { .guarantee = 0.5, .least = 0.5 };
	struct mps_client *members = &m;
	struct mps_client_observation s = { .is_alone = true };

	look(&m, &s, 1000, 1, 0);
	s.is_alone = false;
	for (int i = 0; i < 10 * 400; i++) {
		now += MS;
		if (i % 400 == 0) {
			s.reported_work_ns += 400 * MS * 6 / 10;
			s.inflight_ns = 400 * MS * 6 / 10;
		}
		mps_client_observe(&m, &s, now, MS);
		space_set_paces(&members, 1, MS);
		assert_false(m.is_below);
	}
	assert_true(fabs(mps_client_share(&m) - 0.6) < 0.05);
}

/* Work that does not end is not waited for. */
static void test_stuck_work_without_other_members(void **state)
{
	struct mps_client m = { .guarantee = 0.5, .least = 0.5 };
	struct mps_client_observation s = { .is_alone = true };

	look(&m, &s, 1000, 1, 0);
	s.is_alone = false;
	look(&m, &s, 1000, 0.2, 0);
	assert_true(m.is_below);
	look(&m, &s, 1500, 0, 0);
	assert_false(m.is_below);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_speed_is_learned_alone_only),
		cmocka_unit_test(test_untried_lengths_say_nothing),
		cmocka_unit_test(test_a_part_of_the_card),
		cmocka_unit_test(test_long_work_is_not_missed),
		cmocka_unit_test(test_stuck_work_without_other_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
