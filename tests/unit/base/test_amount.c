/* Amounts of memory as messages show them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/amount.h"

static void test_amounts(void **state)
{
	assert_string_equal(amount(0).text, "0 B");
	assert_string_equal(amount(1023).text, "1023 B");
	assert_string_equal(amount(1536).text, "1.5 KiB");
	assert_string_equal(amount(UINT64_C(1035) << 19).text, "517.5 MiB");
	assert_string_equal(amount(UINT64_C(4) << 30).text, "4 GiB");
	assert_string_equal(amount(UINT64_C(1) << 50).text, "1024 TiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_amounts) };

	return cmocka_run_group_tests_name("amount", tests, NULL, NULL);
}
