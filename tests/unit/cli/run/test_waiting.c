/* What a person at a terminal is told of a command that waits for memory. */
#include "../test.h"

#include "cli/run/waiting.h"

static void test_says_how_much(void **state)
{
	json_t *tenant = json_loads(
		"{\"memory_wait\":{\"waited_s\":2,\"place\":3,\"passed\":0},\"devices\":["
		"{\"memory_reserve_bytes\":4294967296},{\"memory_reserve_bytes\":1073741824}]}",
		0, NULL);
	char text[128];

	assert_true(waiting_describe(tenant, text, sizeof(text)));
	assert_string_equal(text, "waiting for 5.0 GiB of GPU memory (place 3 in the queue)");
	json_decref(tenant);
}

static void test_says_nothing_of_one_that_does_not_wait(void **state)
{
	json_t *tenant = json_loads("{\"memory_wait\":null,\"devices\":[]}", 0, NULL);
	char text[128] = "as before";

	assert_false(waiting_describe(tenant, text, sizeof(text)));
	assert_false(waiting_describe(NULL, text, sizeof(text)));
	assert_string_equal(text, "as before");
	json_decref(tenant);
}

static void test_wakes_nobody_unless_watched(void **state)
{
	struct waiting w;

	waiting_begin(&w, false);
	assert_int_equal(waiting_timeout_ms(&w), -1);
	waiting_begin(&w, true);
	assert_true(waiting_timeout_ms(&w) > 500 && waiting_timeout_ms(&w) <= 1001);
	/* Not due: nobody is asked. */
	waiting_poll(&w, NULL, "x");
	assert_true(w.is_watched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says_how_much),
		cmocka_unit_test(test_says_nothing_of_one_that_does_not_wait),
		cmocka_unit_test(test_wakes_nobody_unless_watched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
