/* Moments between one daemon and the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/util/stamp.h"

static const struct stamp then = { "boot-a", 1000, 50000 };

static uint64_t passed(const char *boot, uint64_t boot_ns, uint64_t wall_ns)
{
	struct stamp now = { .boot_ns = boot_ns, .wall_ns = wall_ns };
	strcpy(now.boot, boot);
	return stamp_passed_ns(&then, &now);
}

static void test_within_a_boot_the_wall_clock_does_not_count(void **state)
{
	assert_int_equal(passed("boot-a", 1300, 50300), 300);
	assert_int_equal(passed("boot-a", 1300, 9000000), 300);
	assert_int_equal(passed("boot-a", 1300, 10), 300);
	/* Another time namespace: unknown. */
	assert_int_equal(passed("boot-a", 400, 50300), 0);
}

static void test_over_a_reboot_it_does(void **state)
{
	assert_int_equal(passed("boot-b", 20, 51000), 1000);
	/* Set back meanwhile. */
	assert_int_equal(passed("boot-b", 20000, 49000), 0);
	assert_int_equal(passed("", 20000, 50007), 7);
}

static void test_unknown_boots_are_not_the_same(void **state)
{
	struct stamp a = { .boot = "" }, b = { .boot = "" };
	assert_false(stamp_is_same_boot(&a, &b));
}

static void test_now_and_through_a_file(void **state)
{
	struct stamp now = stamp_now(), read;
	struct error err = { 0 };
	assert_int_equal(strlen(now.boot), 36);
	cleanup_json json_t *json = stamp_to_json(&now);
	assert_int_equal(stamp_from_json(json, &read, &err), 0);
	assert_true(stamp_is_same_boot(&now, &read));
	assert_int_equal(read.boot_ns, now.boot_ns);
	assert_int_equal(read.wall_ns, now.wall_ns);
	json_object_set_new(json, "boot_ns", json_integer(-1));
	assert_true(stamp_from_json(json, &read, &err) < 0);
	assert_true(stamp_from_json(NULL, &read, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within_a_boot_the_wall_clock_does_not_count),
		cmocka_unit_test(test_over_a_reboot_it_does),
		cmocka_unit_test(test_unknown_boots_are_not_the_same),
		cmocka_unit_test(test_now_and_through_a_file),
	};
	return cmocka_run_group_tests_name("stamp", tests, NULL, NULL);
}
