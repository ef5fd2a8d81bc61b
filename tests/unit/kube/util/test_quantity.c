#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/util/base64.h"
#include "kube/util/quantity.h"

static void test_amounts(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} rows[] = {
		{ "0", 0 },
		{ "3", 3 },
		{ "+7", 7 },
		{ "-2", -2 },
		{ "007", 7 },
		{ "2k", 2000 },
		{ "8Gi", INT64_C(8589934592) },
		{ "0.5Ki", 512 },
		{ "1.5k", 1500 },
		{ "2000m", 2 },
		{ "1e3", 1000 },
		{ "1E3", 1000 },
		{ "10e-1", 1 },
		{ "1.000000000000000000000000", 1 },
		{ "1000000000000000000", INT64_C(1000000000000000000) },
		{ "100200", 100200 },
		{ "1.0020k", 1002 },
		{ "0.000", 0 },
		{ "7Ei", INT64_C(7) << 60 },
		{ "9E", INT64_C(9000000000000000000) },
		{ "5.", 5 },
		{ ".5k", 500 },
		{ "1000000000n", 1 },
		{ "3000000u", 3 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t value = -77;
		struct error err = { 0 };
		if (quantity_parse(rows[i].text, &value, &err) < 0 || value != rows[i].value)
			fail_msg("'%s': %lld, %s", rows[i].text, (long long)value, err.text);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{ "", -EINVAL },
		{ "-", -EINVAL },
		{ ".", -EINVAL },
		{ "k", -EINVAL },
		{ "1kk", -EINVAL },
		{ "1 k", -EINVAL },
		{ " 1", -EINVAL },
		{ "1 ", -EINVAL },
		{ "1K", -EINVAL },
		{ "1e", -EINVAL },
		{ "1e+", -EINVAL },
		{ "1ex", -EINVAL },
		{ "0x10", -EINVAL },
		{ "1.2.3", -EINVAL },
		{ "--1", -EINVAL },
		{ "NaN", -EINVAL },
		{ "1GiB", -EINVAL },
		{ "many", -EINVAL },
		{ "1.5", -EDOM },
		{ "100m", -EDOM },
		{ "1n", -EDOM },
		{ "0.3Ki", -EDOM },
		{ "12e-1", -EDOM },
		{ "16Ei", -ERANGE },
		{ "1e19", -ERANGE },
		{ "8Ei", -ERANGE },
		{ "1e1000", -ERANGE },
		{ "9223372036854775808", -ERANGE },
		{ "1e99999999999", -ERANGE },
		{ "12345678901234567890123", -ERANGE },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t value = -77;
		struct error err = { 0 };
		int r = quantity_parse(rows[i].text, &value, &err);
		if (r != rows[i].code || value != -77)
			fail_msg("'%s': %d, %s", rows[i].text, r, err.text);
		assert_non_null(strstr(err.text, rows[i].text));
	}
}

static void test_in_json(void **state)
{
	int64_t value;
	json_auto_t *texts = json_pack("[s,i,f,b,f,n]", "4k", 12, 2.0, 1, 2.5);
	assert_int_equal(quantity_read_any(json_array_get(texts, 0), &value, NULL), 0);
	assert_int_equal(value, 4000);
	assert_int_equal(quantity_read_any(json_array_get(texts, 1), &value, NULL), 0);
	assert_int_equal(value, 12);
	assert_int_equal(quantity_read_any(json_array_get(texts, 2), &value, NULL), 0);
	assert_int_equal(value, 2);
	assert_int_equal(quantity_read_any(json_array_get(texts, 3), &value, NULL), -EINVAL);
	assert_int_equal(quantity_read_any(json_array_get(texts, 4), &value, NULL), -EDOM);
	assert_int_equal(quantity_read_any(json_array_get(texts, 5), &value, NULL), -EINVAL);
	/* What a NUL cuts short would be another amount. */
	json_auto_t *cut = json_loads("\"1\\u00000\"", JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	assert_non_null(cut);
	assert_int_equal(quantity_read_any(cut, &value, NULL), -EINVAL);
}

static void test_up_to_a_limit(void **state)
{
	uint64_t amount = 77;
	struct error err = { 0 };
	json_auto_t *texts = json_pack("[s,i,s,s,s,i,{}]", "4k", 12, "4001", "-1", "1.5", -1);
	for (size_t i = 2; i < 7; i++) {
		assert_int_equal(quantity_read(json_array_get(texts, i), 4000, &amount, &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, "must be a whole number up to 4000"));
	}
	assert_int_equal(amount, 77);
	assert_int_equal(quantity_read(json_array_get(texts, 0), 4000, &amount, &err), 0);
	assert_int_equal(amount, 4000);
	assert_int_equal(quantity_read(json_array_get(texts, 1), 4000, &amount, &err), 0);
	assert_int_equal(amount, 12);
}

static void test_base64(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },        { "f", "Zg==" },        { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "\xff\xfe\xfd", "//79" }
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *base64 = base64_encode(rows[i][0]), *text = NULL;
		assert_string_equal(base64, rows[i][1]);
		if (*base64) {
			assert_int_equal(base64_decode(base64, &text), 0);
			assert_string_equal(text, rows[i][0]);
		}
		free(text);
		free(base64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amounts), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_in_json), cmocka_unit_test(test_up_to_a_limit),
		cmocka_unit_test(test_base64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
