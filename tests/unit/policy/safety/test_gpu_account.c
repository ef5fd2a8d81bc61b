#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "policy/safety/gpu_account.h"

#define MS UINT64_C(1000000)

static const struct {
	const char *what;
	struct gpu_account_interval interval;
	uint64_t used_ns;
} rows[] = {
	{ "present all the time",
	  { .passed_ns = 1000 * MS, .was_present = true, .is_present = true },
	  1000 * MS },
	{ "not present before", { .passed_ns = 1000 * MS, .is_present = true }, 0 },
	{ "gone by now", { .passed_ns = 1000 * MS, .was_present = true }, 0 },
	{ "frozen for a while",
	  { .passed_ns = 1000 * MS, .frozen_ns = 400 * MS, .was_present = true, .is_present = true },
	  600 * MS },
	{ "frozen all the time",
	  { .passed_ns = 1000 * MS, .frozen_ns = 1001 * MS, .was_present = true, .is_present = true },
	  0 },
	{ "sampled: at work",
	  { .passed_ns = 1000 * MS,
	    .has_samples = true,
	    .has_sample = true,
	    .share = 0.5,
	    .gap_ns = 1000 * MS },
	  500 * MS },
	{ "sampled: fully",
	  { .passed_ns = 1000 * MS,
	    .has_samples = true,
	    .has_sample = true,
	    .share = 1,
	    .gap_ns = 1200 * MS },
	  1200 * MS },
	{ "sampled: nothing, though it is there",
	  { .passed_ns = 1000 * MS, .was_present = true, .is_present = true, .has_samples = true },
	  0 },
	{ "a census more often than samples",
	  { .passed_ns = 50 * MS,
	    .has_samples = true,
	    .has_sample = true,
	    .share = 1,
	    .gap_ns = 200 * MS },
	  200 * MS },
	{ "the first sample",
	  { .passed_ns = 5000 * MS, .has_samples = true, .has_sample = true, .share = 1 },
	  200 * MS },
	{ "the first after a pause",
	  { .passed_ns = 1000 * MS,
	    .has_samples = true,
	    .has_sample = true,
	    .share = 0.1,
	    .gap_ns = 60000 * MS },
	  20 * MS },
	{ "sampled and frozen",
	  { .passed_ns = 1000 * MS,
	    .frozen_ns = 500 * MS,
	    .has_samples = true,
	    .has_sample = true,
	    .share = 0.5,
	    .gap_ns = 1000 * MS },
	  250 * MS },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (gpu_account_ns(&rows[i].interval) != rows[i].used_ns)
			fail_msg("%s: %llu", rows[i].what,
				 (unsigned long long)gpu_account_ns(&rows[i].interval));
}

static void test_what_samples_leave_out(void **state)
{
	/* One of two busy processes is not listed; nothing is left out; no process fits; tenants' work. */
	assert_true(gpu_account_unlisted(1, 0.5, 0, 1) == 0.5);
	assert_true(gpu_account_unlisted(1, 0.5, 0, 2) == 0.25);
	assert_true(gpu_account_unlisted(0.5, 0.45, 0, 1) == 0);
	assert_true(gpu_account_unlisted(1, 0, 0, 0) == 0);
	assert_true(gpu_account_unlisted(1, 0.2, 0.8, 3) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_what_samples_leave_out),
	};
	return cmocka_run_group_tests_name("gpu_account", tests, NULL, NULL);
}
