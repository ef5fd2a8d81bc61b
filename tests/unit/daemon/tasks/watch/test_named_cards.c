/* CUDA_VISIBLE_DEVICES, as CUDA reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/tasks/watch/named_cards.h"

static const char *const uuid[] = { "GPU-11111111-0000", "GPU-11222222-0000", "GPU-33333333-0000",
				    "MIG-44444444-0000" };

static uint64_t named(const char *list)
{
	return named_cards(list, uuid, 4, 0xf, true);
}

static void test_by_numbers(void **state)
{
	assert_int_equal(named("0"), 1);
	assert_int_equal(named("2,0"), 5);
	assert_int_equal(named(" 1 , 2 "), 6);
	/* Indices count the container's GPUs. */
	assert_int_equal(named_cards("0", uuid, 4, 0xc, true), 4);
	assert_int_equal(named_cards("1", uuid, 4, 0xc, true), 8);
}

static void test_by_uuid(void **state)
{
	assert_int_equal(named("GPU-33333333-0000"), 4);
	assert_int_equal(named("GPU-3,MIG-4"), 12);
	assert_int_equal(named("gpu-3,Mig-4"), 12);                    /* in either case */
	assert_int_equal(named("GPU-11"), 0xf);                        /* two begin so */
	assert_int_equal(named_cards("GPU-3", uuid, 4, 0x3, true), 3); /* it has not that one */
}

static void test_what_names_nothing_ends_it(void **state)
{
	assert_int_equal(named("1,-1,2"), 2);
	assert_int_equal(named("0,9,1"), 1);
	assert_int_equal(named("0,x,1"), 1);
	/* A program without GPUs may still set it anew. */
	assert_int_equal(named(""), 0xf);
	assert_int_equal(named("-1"), 0xf);
	assert_int_equal(named("NoDevFiles"), 0xf);
	assert_int_equal(named("1x"), 0xf);
}

static void test_numbers_that_mean_nothing_here(void **state)
{
	assert_int_equal(named_cards("1", uuid, 4, 0xf, false), 0xf);
	assert_int_equal(named_cards("GPU-3", uuid, 4, 0xf, false), 4);
}

static void test_environment(void **state)
{
	static const char text[] = "A=1\0XCUDA_VISIBLE_DEVICES=7\0CUDA_VISIBLE_DEVICES=2,3\0B=";
	const char *name = "CUDA_VISIBLE_DEVICES=";
	assert_string_equal(named_in_environment(text, sizeof(text), name), "2,3");
	assert_null(named_in_environment(text, 4, name));
	assert_null(named_in_environment("", 0, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_numbers),
		cmocka_unit_test(test_by_uuid),
		cmocka_unit_test(test_what_names_nothing_ends_it),
		cmocka_unit_test(test_numbers_that_mean_nothing_here),
		cmocka_unit_test(test_environment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
