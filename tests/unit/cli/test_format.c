#include "test.h"

#include "cli/format.h"

static void test_bytes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1048575, "1.0 MiB" }, /* not 1024.0 KiB */
		{ 4ULL << 30, "4.0 GiB" },
		{ 150754820096ULL, "140.4 GiB" },
		{ UINT64_MAX, "16384.0 PiB" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[FORMAT_MAX];

		format_bytes(cases[i].bytes, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_shares(void **state)
{
	char text[FORMAT_MAX];

	format_asked_pct(30, text);
	assert_string_equal(text, "30");
	format_asked_pct(33.33, text);
	assert_string_equal(text, "33.33");
	format_asked_pct(100, text);
	assert_string_equal(text, "100");
	format_got_pct(29.96, text);
	assert_string_equal(text, "30.0");
}

static void test_seconds(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = { { 0, "0.0s" },    { -1, "0.0s" },    { 59.94, "59.9s" }, { 59.99, "1m00s" },
		      { 125, "2m05s" }, { 3600, "1h00m" }, { 11520, "3h12m" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[FORMAT_MAX];

		format_seconds(cases[i].seconds, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_ms(void **state)
{
	static const struct {
		double ms;
		const char *text;
	} cases[] = { { 0, "0us" },        { -1, "0us" },           { 0.0853, "85us" },
		      { 0.852, "0.85ms" }, { 8.543, "8.54ms" },     { 9.996, "10.0ms" },
		      { 99.96, "100ms" },  { 999.4, "999ms" },      { 999.6, "1.00s" },
		      { 85400, "85.4s" },  { 1e300, "1000000000s" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[FORMAT_MAX];

		format_ms(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_rates(void **state)
{
	char text[FORMAT_MAX];

	format_rate(0.049, text);
	assert_string_equal(text, "0.05");
	format_rate(9.996, text);
	assert_string_equal(text, "10.0");
	format_rate(8541.2, text);
	assert_string_equal(text, "8541");
	format_rate(1e300, text);
	assert_string_equal(text, "1000000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),   cmocka_unit_test(test_shares),
		cmocka_unit_test(test_seconds), cmocka_unit_test(test_ms),
		cmocka_unit_test(test_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
