#include "../test.h"

#include "cli/run/environment.h"

static struct environment make(void)
{
	static char *const from[] = { (char *)"A=1", (char *)"EMPTY=", (char *)"AB=x", NULL };
	struct environment environment;

	assert_int_equal(environment_copy(from, &environment, NULL), 0);
	return environment;
}

static void test_set(void **state)
{
	struct environment environment = make();

	assert_string_equal(environment_get(&environment, "A"), "1");
	assert_null(environment_get(&environment, "B"));
	assert_int_equal(environment_set(&environment, "A", "2", NULL), 0);
	assert_int_equal(environment_set(&environment, "C", "", NULL), 0);
	assert_int_equal(environment.count, 4);
	assert_null(environment.list[4]);
	assert_string_equal(environment_get(&environment, "A"), "2");
	assert_string_equal(environment_get(&environment, "AB"), "x");
	assert_string_equal(environment_get(&environment, "C"), "");
	environment_free(&environment);
}

static void test_prepend(void **state)
{
	struct environment environment = make();

	assert_int_equal(environment_prepend(&environment, "A", "/lib", NULL), 0);
	assert_int_equal(environment_prepend(&environment, "EMPTY", "/lib", NULL), 0);
	assert_int_equal(environment_prepend(&environment, "NEW", "/lib", NULL), 0);
	assert_string_equal(environment_get(&environment, "A"), "/lib:1");
	assert_string_equal(environment_get(&environment, "EMPTY"), "/lib");
	assert_string_equal(environment_get(&environment, "NEW"), "/lib");
	environment_free(&environment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_prepend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
