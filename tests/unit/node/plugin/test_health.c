/* When a card may be given to pods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/plugin/health.h"

static void test_comes_and_goes(void **state)
{
	struct health h = health_new();
	assert_true(h.is_healthy);
	for (unsigned i = 0; i < 5; i++)
		assert_false(health_note(&h, true));
	assert_true(health_note(&h, false));
	assert_false(h.is_healthy);
	/* Answers now and then are not enough. */
	for (unsigned i = 0; i < 10; i++) {
		assert_false(health_note(&h, true));
		assert_false(health_note(&h, true));
		assert_false(health_note(&h, false));
	}
	for (unsigned i = 1; i < HEALTH_ANSWERS; i++)
		assert_false(health_note(&h, true));
	assert_true(health_note(&h, true));
	assert_true(h.is_healthy);
	assert_true(health_note(&h, false));
}

/* Answers do not make it good; a reset may. */
static void test_an_error_of_its_own(void **state)
{
	struct health h = health_new();
	assert_true(health_condemn(&h));
	assert_false(health_condemn(&h));
	for (unsigned i = 0; i < 100; i++)
		assert_false(health_note(&h, true));
	assert_false(h.is_healthy);
	assert_false(health_note(&h, false));
	for (unsigned i = 1; i < HEALTH_ANSWERS; i++)
		assert_false(health_note(&h, true));
	assert_true(health_note(&h, true));
	/* Away already: nothing new, but it stays so. */
	assert_true(health_note(&h, false));
	assert_false(health_condemn(&h));
	for (unsigned i = 0; i < 100; i++)
		assert_false(health_note(&h, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_comes_and_goes),
					    cmocka_unit_test(test_an_error_of_its_own) };
	return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
