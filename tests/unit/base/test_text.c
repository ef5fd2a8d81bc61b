#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/text.h"

static void check(const char *before, const char *after)
{
	char text[64];
	strcpy(text, before);
	text_clean(text);
	assert_string_equal(text, after);
	assert_true(*text_clean_prefix_end(text, SIZE_MAX) == '\0');
	assert_int_equal(*text_clean_prefix_end(before, SIZE_MAX) == '\0', !strcmp(before, after));
}

static void test_what_is_text_stays(void **state)
{
	check("", "");
	check("web-1", "web-1");
	check("gr\xc3\xb6\xc3\x9f"
	      "er \xe2\x82\xac \xf0\x9f\x90\x8b",
	      "gr\xc3\xb6\xc3\x9f"
	      "er \xe2\x82\xac \xf0\x9f\x90\x8b");
}

static void test_what_is_none_does_not(void **state)
{
	check("a\nb\tc\x1b[31m\x7f", "a?b?c?[31m?");
	check("\xff\xfe", "??");
	/* Cut in the middle, begun in the middle. */
	check("a\xe2\x82", "a??");
	check("\x82\xac", "??");
	/* Longer than it must be; a surrogate; beyond the end; a control character of C1. */
	check("\xc0\x80", "??");
	check("\xe0\x80\x80", "???");
	check("\xed\xa0\x80", "???");
	check("\xf4\x90\x80\x80", "????");
	check("\xf5\x80\x80\x80", "????");
	check("\xc2\x9b", "??");
}

static void test_size(void **state)
{
	static const char text[] = { 'a', 'b', (char)0xc3, (char)0xb6 };
	assert_ptr_equal(text_clean_prefix_end(text, 2), text + 2);
	assert_ptr_equal(text_clean_prefix_end(text, 3), text + 2);
	assert_ptr_equal(text_clean_prefix_end(text, 4), text + 4);
}

static void test_it_is_told_what_is_none(void **state)
{
	struct error err;
	char text[2000];

	assert_int_equal(text_check("a \303\266", &err), 0);
	assert_int_equal(text_check("a\xff", &err), -EILSEQ);
	assert_string_equal(err.text,
			    "'a?': is not UTF-8, or has control characters (each shown as \"?\")");
	memset(text, '\n', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(text_check(text, &err), -EILSEQ);
}

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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_text_stays),
		cmocka_unit_test(test_what_is_none_does_not),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_it_is_told_what_is_none),
		cmocka_unit_test(test_amounts),
	};
	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
