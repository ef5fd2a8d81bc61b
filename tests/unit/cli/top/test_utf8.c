#include "../test.h"

#include "cli/top/utf8.h"

static void test_characters(void **state)
{
	static const uint32_t wanted[] = { 'a', 0xe9, 0x20ac, 0x1f600, 0 };
	const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
	const char *c = text;

	for (size_t i = 0; i < 5; i++)
		assert_int_equal(utf8_next(&c), wanted[i]);
	assert_ptr_equal(c, text + strlen(text));
}

/* Cut characters, long forms and what a terminal would obey: nothing of them gets through. */
static void test_what_is_none(void **state)
{
	static const char *const bad[] = { "\xc3", "\xe2\x82", "\xc0\x80",
					   "\xff", "\x1b[2J",  "\xc2\x9b" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *c = bad[i];

		assert_int_equal(utf8_next(&c), '?');
		assert_ptr_equal(c, bad[i] + 1);
	}
}

static void test_there_and_back(void **state)
{
	static const uint32_t tried[] = { ' ',    '~',    0xa0,   0x7ff,   0x800,
					  0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff };

	for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); i++) {
		char text[UTF8_MAX + 1] = "";
		const char *c = text;

		text[utf8_encode(tried[i], text)] = '\0';
		assert_int_equal(utf8_next(&c), tried[i]);
	}
	char text[UTF8_MAX];
	assert_int_equal(utf8_encode(0xd800, text), 1);
	assert_int_equal(utf8_encode(0x110000, text), 1);
}

static void test_columns(void **state)
{
	assert_int_equal(utf8_columns("abc"), 3);
	assert_int_equal(utf8_columns("\xe6\xbc\xa2\xe5\xad\x97"), 4); /* two of China's */
	assert_int_equal(utf8_columns("e\xcc\x81"), 1);                /* an accent that combines */
	assert_int_equal(utf8_columns(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
