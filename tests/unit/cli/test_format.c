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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
