#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "http/dashboard/json_text.h"

static void assert_text(struct json_text *t, const char *wanted)
{
	char *text = json_text_end(t);
	assert_string_equal(text, wanted);
	free(text);
}

static void test_commas_come_by_themselves(void **state)
{
	struct json_text t = { 0 };
	json_text_open(&t, NULL, '{');
	json_text_whole(&t, "a", -5);
	json_text_open(&t, "b", '[');
	json_text_close(&t, ']');
	json_text_open(&t, "c", '[');
	json_text_bool(&t, NULL, true);
	json_text_null(&t, NULL);
	json_text_open(&t, NULL, '{');
	json_text_close(&t, '}');
	json_text_raw(&t, NULL, "[1]");
	json_text_close(&t, ']');
	json_text_string(&t, "d", NULL);
	json_text_close(&t, '}');
	assert_text(&t, "{\"a\":-5,\"b\":[],\"c\":[true,null,{},[1]],\"d\":null}");
}

static void test_what_stands_before_takes_no_comma(void **state)
{
	struct json_text t = { 0 };
	json_text_bytes(&t, "data: ", 6);
	json_text_open(&t, NULL, '[');
	json_text_whole(&t, NULL, 0);
	json_text_whole(&t, NULL, INT64_MIN);
	json_text_close(&t, ']');
	assert_text(&t, "data: [0,-9223372036854775808]");
}

static void test_numbers(void **state)
{
	static const double numbers[] = { 0,     0.004, 0.005, 0.1, 0.99, 0.996,  1,     1.5,
					  12.34, 99.99, 100,   1e6, -0.5, -0.001, -12.3, 86400.07 };
	struct json_text t = { 0 };
	json_text_open(&t, NULL, '[');
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_text_real(&t, NULL, numbers[i]);
	json_text_real(&t, NULL, NAN);
	json_text_real(&t, NULL, INFINITY);
	json_text_real(&t, NULL, 1e300);
	json_text_close(&t, ']');
	assert_text(&t, "[0,0,0.01,0.1,0.99,1,1,1.5,12.34,99.99,100,1000000,-0.5,0,-12.3,86400.07,"
			"null,null,null]");
}

/* As a parser reads it: the text again, but for what is no text. */
static void test_strings(void **state)
{
	static const struct {
		const char *value, *wanted;
	} rows[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\"", "\"" },
		{ "a\\b\"c\"", "a\\b\"c\"" },
		{ "tab\there\n", "tab?here?" },
		{ "\x01", "?" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "cut \xc3", "cut ?" },
		{ "\xff\xfe\"", "??\"" },
		{ "</script>", "</script>" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct json_text t = { 0 };
		json_text_open(&t, NULL, '[');
		json_text_string(&t, NULL, rows[i].value);
		json_text_close(&t, ']');
		char *text = json_text_end(&t);
		json_t *json = json_loads(text, 0, NULL);
		if (!json)
			fail_msg("%s", text);
		assert_string_equal(json_string_value(json_array_get(json, 0)), rows[i].wanted);
		json_decref(json);
		free(text);
	}
}

static void test_a_long_one(void **state)
{
	struct json_text t = { 0 };
	json_text_open(&t, NULL, '[');
	for (int i = 0; i < 100000; i++)
		json_text_whole(&t, NULL, i);
	json_text_close(&t, ']');
	char *text = json_text_end(&t);
	json_t *json = json_loads(text, 0, NULL);
	assert_int_equal(json_array_size(json), 100000);
	assert_int_equal(json_integer_value(json_array_get(json, 99999)), 99999);
	json_decref(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commas_come_by_themselves),
		cmocka_unit_test(test_what_stands_before_takes_no_comma),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_a_long_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
