#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "http/bearer_token.h"

#define TOKEN "0123456789abcdef"

static void test_who_names_it(void **state)
{
	assert_true(token_is_named(TOKEN, "Bearer " TOKEN));
	assert_true(token_is_named(TOKEN, "bearer  " TOKEN));
	assert_false(token_is_named(TOKEN, NULL));
	assert_false(token_is_named(TOKEN, ""));
	assert_false(token_is_named(TOKEN, TOKEN));
	assert_false(token_is_named(TOKEN, "Basic " TOKEN));
	assert_false(token_is_named(TOKEN, "Bearer "));
	assert_false(token_is_named(TOKEN, "Bearer 0123456789abcdeX"));
	assert_false(token_is_named(TOKEN, "Bearer X123456789abcdef"));
	assert_false(token_is_named(TOKEN, "Bearer 0123456789abcde"));
	assert_false(token_is_named(TOKEN, "Bearer " TOKEN "0"));
	assert_false(token_is_named(TOKEN, "Bearer " TOKEN " "));
}

static void test_lengths(void **state)
{
	char token[TOKEN_MAX + 1], header[TOKEN_MAX + 16];
	memset(token, 'x', TOKEN_MAX);
	token[TOKEN_MAX] = '\0';
	snprintf(header, sizeof(header), "Bearer %s", token);
	assert_true(token_is_named(token, header));
	snprintf(header, sizeof(header), "Bearer %sx", token);
	assert_false(token_is_named(token, header));
	token[TOKEN_MAX - 1] = 'y';
	snprintf(header, sizeof(header), "Bearer %.*sx", TOKEN_MAX - 1, token);
	assert_false(token_is_named(token, header));
}

/* Writes the file and reads the token; -errno, with what was said in `said`. */
static int read_from(const char *text, char token[TOKEN_MAX + 1], struct error *err)
{
	char path[] = "/tmp/allot-token-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	int r = token_read(path, token, err);
	unlink(path);
	return r;
}

static void test_the_file(void **state)
{
	char token[TOKEN_MAX + 1];
	struct error err = { 0 };
	assert_int_equal(read_from(TOKEN, token, &err), 0);
	assert_string_equal(token, TOKEN);
	assert_int_equal(read_from("  " TOKEN " \r\nmore\n", token, &err), 0);
	assert_string_equal(token, TOKEN);
}

static void refused(const char *text, const char *word)
{
	char token[TOKEN_MAX + 1] = "kept";
	struct error err = { 0 };
	assert_int_equal(read_from(text, token, &err), -EINVAL);
	if (!strstr(err.text, word) || !strstr(err.text, "/tmp/allot-token-"))
		fail_msg("'%s' does not say '%s' and which file", err.text, word);
	assert_string_equal(token, "kept");
}

static void test_files_without_one(void **state)
{
	char token[TOKEN_MAX + 1], longest[TOKEN_MAX + 8];
	struct error err = { 0 };
	refused("", "empty");
	refused("\n" TOKEN "\n", "16 to 255");
	refused("short\n", "16 to 255");
	refused("01234567 89abcdef\n", "ASCII");
	refused("01234567\xc3\xb6 9abcdef\n", "ASCII");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	refused(longest, "16 to 255");
	assert_int_equal(token_read("/nowhere/token", token, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/token"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_names_it),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_the_file),
		cmocka_unit_test(test_files_without_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
