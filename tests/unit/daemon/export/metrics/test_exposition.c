#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/export/metrics/exposition.h"

static void assert_text(struct exposition *x, const char *expected)
{
	char *text;
	size_t length;
	assert_int_equal(exposition_end(x, &text, &length), 0);
	assert_string_equal(text, expected);
	assert_int_equal(length, strlen(expected));
	free(text);
}

static void test_a_name_and_its_samples(void **state)
{
	struct exposition x = { 0 };
	exposition_family(&x, "a_bytes", EXPOSITION_GAUGE, "What \"it\" has.");
	exposition_whole(&x, "a_bytes", "", 0);
	exposition_whole(&x, "a_bytes", "k=\"v\"", UINT64_MAX);
	exposition_family(&x, "b_total", EXPOSITION_COUNTER, "Two\nlines, a \\.");
	exposition_whole(&x, "b_total", "", 7);
	assert_text(&x, "# HELP a_bytes What \"it\" has.\n"
			"# TYPE a_bytes gauge\n"
			"a_bytes 0\n"
			"a_bytes{k=\"v\"} 18446744073709551615\n"
			"# HELP b_total Two\\nlines, a \\\\.\n"
			"# TYPE b_total counter\n"
			"b_total 7\n");
	assert_text(&x, "");
}

static void test_a_name_without_samples_leaves_nothing(void **state)
{
	struct exposition x = { 0 };
	exposition_family(&x, "first", EXPOSITION_GAUGE, "-");
	exposition_family(&x, "second", EXPOSITION_GAUGE, "-");
	exposition_whole(&x, "second", "", 1);
	exposition_family(&x, "third", EXPOSITION_GAUGE, "-");
	exposition_family(&x, "fourth", EXPOSITION_GAUGE, "-");
	assert_text(&x, "# HELP second -\n# TYPE second gauge\nsecond 1\n");
}

static void assert_seconds(uint64_t ns, const char *expected)
{
	struct exposition x = { 0 };
	exposition_seconds(&x, "", "", ns);
	assert_text(&x, expected);
}

static void test_nanoseconds_are_exact(void **state)
{
	assert_seconds(0, " 0\n");
	assert_seconds(1, " 0.000000001\n");
	assert_seconds(1500000000, " 1.5\n");
	assert_seconds(12000000000, " 12\n");
	assert_seconds(100000000, " 0.1\n");
	assert_seconds(UINT64_MAX, " 18446744073.709551615\n");
}

static void assert_real(double value, const char *expected)
{
	struct exposition x = { 0 };
	exposition_real(&x, "", "", value);
	assert_text(&x, expected);
}

static void test_what_is_no_number_is_named(void **state)
{
	assert_real(NAN, " NaN\n");
	assert_real(-NAN, " NaN\n");
	assert_real(INFINITY, " +Inf\n");
	assert_real(-INFINITY, " -Inf\n");
	assert_real(0, " 0\n");
	assert_real(-3, " -3\n");
	assert_real(0.3, " 0.3\n");
	assert_real(1.0 / 3, " 0.333333333\n");
	assert_real(1e12, " 1e+12\n");
}

static void assert_label(const char *value, const char *expected)
{
	char text[64] = "";
	exposition_label(text, sizeof(text), "k", value);
	assert_string_equal(text, expected);
}

static void test_labels_are_escaped(void **state)
{
	assert_label("", "k=\"\"");
	assert_label("a\"b", "k=\"a\\\"b\"");
	assert_label("a\\b", "k=\"a\\\\b\"");
	assert_label("a\nb", "k=\"a\\nb\"");
	assert_label("\\n", "k=\"\\\\n\"");
	assert_label("{a=\"b\"},c", "k=\"{a=\\\"b\\\"},c\"");
}

static void test_only_utf8_goes_out(void **state)
{
	assert_label("K\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80",
		     "k=\"K\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80\"");
	assert_label("a\xff", "k=\"a?\"");
	assert_label("\xc3", "k=\"?\"");                /* cut */
	assert_label("\xc3\"x", "k=\"?\\\"x\"");        /* later text is not part of it */
	assert_label("\xc0\xaf", "k=\"??\"");           /* overlong */
	assert_label("\xed\xa0\x80", "k=\"???\"");      /* a surrogate */
	assert_label("\xf4\x90\x80\x80", "k=\"????\""); /* beyond the last character */
	assert_label("\xe2\x82", "k=\"??\"");
}

static void test_labels_that_do_not_fit(void **state)
{
	char text[16] = "";
	exposition_label(text, sizeof(text), "k", "0123456789abcdef");
	assert_string_equal(text, "k=\"0123456789a\"");
	/* An escape is not cut in two, nor is a character. */
	text[0] = '\0';
	exposition_label(text, sizeof(text), "k", "0123456789\"");
	assert_string_equal(text, "k=\"0123456789\"");
	text[0] = '\0';
	exposition_label(text, sizeof(text), "k", "0123456789\xc3\xb6");
	assert_string_equal(text, "k=\"0123456789\"");
	/* No room for the key: nothing. */
	exposition_label(text, sizeof(text), "key", "v");
	assert_string_equal(text, "k=\"0123456789\"");
}

static void test_labels_are_separated(void **state)
{
	char text[64] = "";
	exposition_label(text, sizeof(text), "a", "1");
	exposition_label(text, sizeof(text), "b", "2");
	assert_string_equal(text, "a=\"1\",b=\"2\"");
}

static void test_a_long_text_grows(void **state)
{
	struct exposition x = { 0 };
	char *text;
	size_t length, lines = 0;
	for (unsigned i = 0; i < 100000; i++)
		exposition_whole(&x, "name", "k=\"v\"", i);
	assert_int_equal(exposition_end(&x, &text, &length), 0);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 100000);
	assert_non_null(strstr(text, "\nname{k=\"v\"} 99999\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_and_its_samples),
		cmocka_unit_test(test_a_name_without_samples_leaves_nothing),
		cmocka_unit_test(test_nanoseconds_are_exact),
		cmocka_unit_test(test_what_is_no_number_is_named),
		cmocka_unit_test(test_labels_are_escaped),
		cmocka_unit_test(test_only_utf8_goes_out),
		cmocka_unit_test(test_labels_that_do_not_fit),
		cmocka_unit_test(test_labels_are_separated),
		cmocka_unit_test(test_a_long_text_grows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
