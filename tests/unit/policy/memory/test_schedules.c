/*
 * Random schedules: no request waits for ever, or longer than the bound; grants never exceed a card; the order is as specified.
 * test_admit_schedules COUNT [FIRST-SEED]: a seed that fails can be played again by itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "scene.h"

static uint64_t schedules = 100000, first_seed = 1;

static void test_random_schedules(void **state)
{
	struct scene_tally t = { 0 };

	for (uint64_t seed = first_seed; seed < first_seed + schedules; seed++) {
		const char *wrong = scene_play(seed, &t);
		if (wrong)
			fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
	}
	print_message(
		"seeds %llu to %llu: %llu decisions, %llu grants, %llu times left waiting (%llu "
		"overdue), %llu growths, %llu refused; the longest wait was %.3f of its bound\n",
		(unsigned long long)first_seed, (unsigned long long)(first_seed + schedules - 1),
		(unsigned long long)t.decisions, (unsigned long long)t.grants,
		(unsigned long long)t.waits, (unsigned long long)t.overdue,
		(unsigned long long)t.growths, (unsigned long long)t.refusals, t.wait_of_bound);
	/* Each kind of thing did happen. */
	assert_true(t.waits && t.overdue && t.growths && t.refusals);
	assert_true(schedules < 1000 || t.wait_of_bound > 0.5);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_schedules),
	};

	if (argc > 1)
		schedules = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
