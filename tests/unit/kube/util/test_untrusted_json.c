#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include "kube/util/untrusted_json.h"

/* Of an object, the member x. */
static void expect(const char *text, const char *x)
{
	json_error_t why;
	json_t *json = untrusted_json_parse(text, strlen(text), 0, &why);

	assert_non_null(json);
	assert_string_equal(json_string_value(json_object_get(json, "x")), x);
	assert_int_equal(json_string_length(json_object_get(json, "x")), strlen(x));
	json_decref(json);
}

/* What comes before it is not taken for the whole. */
static void test_nul(void **state)
{
	expect("{\"x\":\"a\\u0000b\"}", "a\xef\xbf\xbd"
					"b");
	expect("{\"x\":\"\\u0000\\u0000\"}", "\xef\xbf\xbd\xef\xbf\xbd");
	expect("{\"y\":\"\\u0000\",\"x\":\"a\"}", "a");
	/* jansson takes no key with one, whatever it is told. */
	expect("{\"\\u0000\":1,\"x\":\"a\"}", "a");
	expect("{\"x\":\"\\\\\\u0000\"}", "\\\xef\xbf\xbd");
}

/* A backslash that is escaped itself escapes nothing. */
static void test_no_nul(void **state)
{
	expect("{\"x\":\"\\\\u0000\"}", "\\u0000");
	expect("{\"x\":\"\\\\\\\\u0000\"}", "\\\\u0000");
	expect("{\"x\":\"\\u0001\"}", "\x01");
	expect("{\"x\":\"u0000\"}", "u0000");
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"", "{", "{\"x\":\"\\u0000", "{\"x\":\"\\", "\\u0000", "{\"x\":\"\\u000\"}"
	};
	json_error_t why;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		/* At its own end, where a byte more is seen by a sanitizer. */
		char *text = malloc(strlen(bad[i]) + 1);

		memcpy(text, bad[i], strlen(bad[i]));
		assert_null(untrusted_json_parse(text, strlen(bad[i]), 0, &why));
		assert_true(strlen(why.text) > 0);
		assert_null(untrusted_json_parse(text, strlen(bad[i]), 0, NULL));
		free(text);
	}
	assert_null(untrusted_json_parse("{\"x\":1,\"x\":2}", 13, JSON_REJECT_DUPLICATES, &why));
	/* But where a key was made the same as another. */
	static const char same[] = "{\"a\\u0000\":1,\"a\\ufffd\":2}";
	json_t *json = untrusted_json_parse(same, sizeof(same) - 1, JSON_REJECT_DUPLICATES, &why);
	assert_int_equal(json_object_size(json), 1);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_no_nul),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
