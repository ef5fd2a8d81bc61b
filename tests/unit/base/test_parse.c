#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/parse.h"

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "4GiB", 4ULL << 30 },
		{ "4096MiB", 4ULL << 30 },
		{ "4GB", 4000000000ULL },
		{ "4Gi", 4ULL << 30 },
		{ "4G", 4000000000ULL },
		{ "512M", 512000000ULL },
		{ "1.5GiB", 3ULL << 29 },
		{ "1B", 1 },
		{ "512kib", 512ULL << 10 },
		{ "0.5KiB", 512 },
		{ "1TiB", 1ULL << 40 },
		{ "0.25TB", 250000000000ULL },
		{ "8388607TiB", 8388607ULL << 40 },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t bytes = 0;

		assert_int_equal(parse_size(good[i].text, &bytes, NULL), 0);
		assert_true(bytes == good[i].bytes);
	}
}

static void test_bad_sizes(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "is empty" },
		{ "0", "must be more than 0" },
		{ "-1", "must be more than 0" },
		{ "-4GiB", "must be more than 0" },
		{ "0GiB", "must be more than 0" },
		{ "0.0GiB", "must be more than 0" },
		{ "4XB", "unit unknown" },
		{ "4", "unit missing" },
		{ "4 GiB", "unit unknown" },
		{ "4GiBs", "unit unknown" },
		{ "GiB", "not a number" },
		{ "4.GiB", "not a number" },
		{ ".5GiB", "not a number" },
		{ "+4GiB", "not a number" },
		{ "0x4GiB", "unit unknown" },
		{ "nanGiB", "not a number" },
		{ "99999999999999999999GiB", "not a number" },
		{ "9000000TiB", "too large" },
		{ "0.1B", "less than the smallest possible value" },
		{ "4,5GiB", "unit unknown" },
		{ "--cores", "not a number" },
		{ "4GiB\n", "unit unknown" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = { 0 };
		uint64_t bytes = 77;

		assert_true(parse_size(bad[i].text, &bytes, &err) < 0);
		assert_true(bytes == 77);
		assert_non_null(strstr(err.text, bad[i].says));
		assert_non_null(strstr(err.text, "write for example 4GiB"));
		assert_null(strchr(err.text, '\n'));
	}
}

static void test_error_names_value(void **state)
{
	struct error err;
	uint64_t bytes;
	char text[200];

	assert_int_equal(parse_size("4XB", &bytes, &err), -EINVAL);
	assert_string_equal(err.text, "'4XB': unit unknown; write for example 4GiB, 4096MiB or 4GB");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_true(parse_size(text, &bytes, &err) < 0);
	assert_true(strlen(err.text) < 160);
	assert_non_null(strstr(err.text, "...'"));
}

static void test_numbers(void **state)
{
	static const char *const bad[] = { "",   "x",     "-1",  "1.",  ".5",  "1e3", "+1",
					   "1 ", "100.1", "0.4", "nan", "inf", "0x1", "1.0000000001" };
	struct error err;
	double value = -1;

	assert_int_equal(parse_number("0.5", 0.5, 100, &value, NULL), 0);
	assert_true(value == 0.5);
	assert_int_equal(parse_number("100", 0.5, 100, &value, NULL), 0);
	assert_true(value == 100);
	assert_int_equal(parse_number("12.125", 0.5, 100, &value, NULL), 0);
	assert_true(value == 12.125);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		value = 7;
		assert_true(parse_number(bad[i], 0.5, 100, &value, &err) < 0);
		assert_true(value == 7);
		assert_non_null(strstr(err.text, "write a number from 0.5 to 100"));
	}
}

static void test_percents(void **state)
{
	static const char *const bad[] = { "0",   "-1",  "101",   "100.01", "abc", "",     "30%%",
					   "1e1", "3 0", "0.001", "33.333", "nan", "0.00", "-0.5" };
	double pct = 0;

	assert_int_equal(parse_percent("30", &pct, NULL), 0);
	assert_true(pct == 30.0);
	assert_int_equal(parse_percent("100%", &pct, NULL), 0);
	assert_true(pct == 100.0);
	assert_int_equal(parse_percent("12.5", &pct, NULL), 0);
	assert_true(pct == 12.5);
	assert_int_equal(parse_percent("0.01", &pct, NULL), 0);
	assert_true(pct == 0.01);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = { 0 };

		pct = 77;
		assert_int_equal(parse_percent(bad[i], &pct, &err), -EINVAL);
		assert_true(pct == 77);
		assert_non_null(strstr(err.text, "for example 30"));
	}
}

/* 0.3 of a GPU, as other schedulers write 30 %, is not taken for 0.3 %. */
static void test_part_of_a_gpu(void **state)
{
	struct error err = { 0 };
	double pct = 77;

	assert_int_equal(parse_cores("0.3", &pct, &err), -EINVAL);
	assert_true(pct == 77);
	assert_string_equal(err.text, "'0.3': is in percent, not in GPUs; write 30 for that part of "
				      "a GPU, or 0.3% for less than one percent");
	assert_int_equal(parse_cores("0.3%", &pct, NULL), 0);
	assert_true(pct == 0.3);
	assert_int_equal(parse_cores("1.5", &pct, NULL), 0);
	assert_true(pct == 1.5);
}

static void test_durations(void **state)
{
	uint64_t ns = 0;

	assert_int_equal(parse_duration("2", &ns, NULL), 0);
	assert_true(ns == 2000000000ULL);
	assert_int_equal(parse_duration("0.5", &ns, NULL), 0);
	assert_true(ns == 500000000ULL);
	assert_int_equal(parse_duration("500ms", &ns, NULL), 0);
	assert_true(ns == 500000000ULL);
	assert_int_equal(parse_duration("3m", &ns, NULL), 0);
	assert_true(ns == 180000000000ULL);
	assert_true(parse_duration("0", &ns, NULL) < 0);
	assert_true(parse_duration("2 s", &ns, NULL) < 0);
	assert_true(parse_duration("-2s", &ns, NULL) < 0);
	assert_true(parse_duration("99999999999h", &ns, NULL) < 0);
}

static void test_ints(void **state)
{
	struct error err;
	int64_t value = 0;

	assert_int_equal(parse_int("-100", -100, 100, &value, NULL), 0);
	assert_true(value == -100);
	assert_int_equal(parse_int("+7", -100, 100, &value, NULL), 0);
	assert_true(value == 7);
	assert_int_equal(parse_int("101", -100, 100, &value, &err), -ERANGE);
	assert_non_null(strstr(err.text, "from -100 to 100"));
	assert_int_equal(parse_int("1.5", -100, 100, &value, NULL), -EINVAL);
	assert_int_equal(parse_int("", -100, 100, &value, NULL), -EINVAL);
	assert_int_equal(parse_int("-", -100, 100, &value, NULL), -EINVAL);
	assert_int_equal(parse_int("--5", -100, 100, &value, NULL), -EINVAL);
	assert_int_equal(parse_int("18446744073709551615", 0, 5, &value, NULL), -ERANGE);
	assert_true(value == 7);
}

static void test_sharing(void **state)
{
	struct error err = { 0 };
	bool is_space = true;

	assert_int_equal(parse_sharing("time", &is_space, &err), 0);
	assert_false(is_space);
	assert_int_equal(parse_sharing("space", &is_space, &err), 0);
	assert_true(is_space);
	assert_int_equal(parse_sharing("both", &is_space, &err), -EINVAL);
	assert_string_equal(err.text, "'both': must be time or space");
	assert_int_equal(parse_sharing("auto", &is_space, &err), -EINVAL);
	assert_string_equal(err.text, "'auto': was removed; must be time or space");
	assert_true(is_space);
}

static void test_names(void **state)
{
	char text[70];

	assert_int_equal(parse_name("a", NULL), 0);
	assert_int_equal(parse_name("web-1.x_Y", NULL), 0);
	assert_true(parse_name("", NULL) < 0);
	assert_true(parse_name("-a", NULL) < 0);
	assert_true(parse_name("..", NULL) < 0);
	assert_true(parse_name("a/b", NULL) < 0);
	assert_true(parse_name("a b", NULL) < 0);
	assert_true(parse_name("\xc3\xa4", NULL) < 0);
	memset(text, 'a', sizeof(text));
	text[63] = '\0';
	assert_int_equal(parse_name(text, NULL), 0);
	text[63] = 'a';
	text[64] = '\0';
	assert_true(parse_name(text, NULL) < 0);
}

static void test_devices(void **state)
{
	static const char *const bad[] = {
		"",      ",",   "0,",   ",0",          "0,,1",
		"-1",    "a",   "0,0",  "GPU-",        "GPU-x y",
		"all,0", "1.5", "4096", "GPU-a,GPU-a", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"
	};
	struct parse_devices devices;

	assert_int_equal(parse_devices("all", &devices, NULL), 0);
	assert_true(devices.all);
	assert_int_equal(parse_devices("1,0", &devices, NULL), 0);
	assert_int_equal(devices.count, 2);
	assert_int_equal(devices.item[0].index, 1);
	assert_false(devices.all);
	assert_int_equal(parse_devices("GPU-00-ab,3", &devices, NULL), 0);
	assert_true(devices.item[0].by_uuid);
	assert_string_equal(devices.item[0].uuid, "GPU-00-ab");
	assert_false(devices.item[1].by_uuid);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = { 0 };

		assert_int_equal(parse_devices(bad[i], &devices, &err), -EINVAL);
		assert_int_not_equal(strlen(err.text), 0);
	}
	assert_int_equal(devices.count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_bad_sizes),
		cmocka_unit_test(test_error_names_value),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_percents),
		cmocka_unit_test(test_part_of_a_gpu),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_ints),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
