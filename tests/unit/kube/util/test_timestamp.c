#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/util/timestamp.h"

static void good(const char *text, int64_t s)
{
	int64_t got;
	struct error err;
	assert_int_equal(timestamp_parse_rfc3339(text, &got, &err), 0);
	assert_int_equal(got, s);
}

static void bad(const char *text)
{
	int64_t got = 7;
	struct error err;
	assert_int_equal(timestamp_parse_rfc3339(text, &got, &err), -22);
	assert_int_equal(got, 7);
	assert_non_null(strstr(err.text, "must be a time such as 2026-"));
}

static void test_rfc3339(void **state)
{
	good("1970-01-01T00:00:00Z", 0);
	good("2026-08-21T10:00:00Z", 1787306400);
	good("2026-08-21T18:00:00+08:00", 1787306400);
	good("2026-08-21T05:30:00.25-04:30", 1787306400);
	good("2024-02-29T23:59:60z", 1709251200);
	bad("");
	bad("2026-08-21");
	bad("2026-08-21 10:00:00Z");
	bad("2026-08-21T10:00:00");
	bad("2026-08-21T10:00:00Zx");
	bad("2026-08-21T10:00:00.Z");
	bad("2026-02-29T10:00:00Z");
	bad("2026-13-01T10:00:00Z");
	bad("2026-00-01T10:00:00Z");
	bad("2026-01-00T10:00:00Z");
	bad("2026-01-01T24:00:00Z");
	bad("2026-01-01T10:60:00Z");
	bad("2026-01-01T10:00:00+8:00");
	bad("2026-01-01T10:00:00+24:00");
	bad("+026-01-01T10:00:00Z");
	bad("1969-12-31T23:59:59Z");
}

static void test_back(void **state)
{
	char text[TIMESTAMP_MAX];
	timestamp_format_rfc3339(1787306400, text);
	assert_string_equal(text, "2026-08-21T10:00:00Z");
	timestamp_format_plain(1787306400, text);
	assert_string_equal(text, "2026-08-21 10:00:00");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rfc3339),
					    cmocka_unit_test(test_back) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
