/* Manifests: valid and invalid ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/containers/trust/manifest.h"

#define FIRST "allot-manifest 1\n"
#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static struct manifest manifest;

static void test_reads(void **state)
{
	static const char text[] = FIRST "# of June\n\n" HASH "  liballot.so\n" OTHER " *other.so";
	char digits[2 * SHA256_BYTES + 1];
	struct error err = { 0 };
	assert_int_equal(manifest_parse(text, strlen(text), &manifest, &err), 0);
	assert_int_equal(manifest.count, 2);
	manifest_format(manifest.entry[0].sha256, digits);
	assert_string_equal(digits, HASH);
	assert_true(manifest_has(&manifest, "liballot.so", manifest.entry[0].sha256));
	/* Another's hash is not its own. */
	assert_false(manifest_has(&manifest, "liballot.so", manifest.entry[1].sha256));
	assert_false(manifest_has(&manifest, "liballot", manifest.entry[0].sha256));
	assert_true(manifest_has(&manifest, "other.so", manifest.entry[1].sha256));
}

static void test_refuses(void **state)
{
	static const struct {
		const char *text, *word;
	} rows[] = {
		{ "", "names no file" },
		{ FIRST, "names no file" },
		{ HASH "  liballot.so\n", "line 1: must be 'allot-manifest 1'" },
		{ "allot-manifest 12\n" HASH "  liballot.so\n", "line 1" },
		{ FIRST HASH " liballot.so\n", "line 2" },
		{ FIRST HASH "  \n", "line 2" },
		{ FIRST HASH "\n", "line 2" },
		{ FIRST "# x\n" HASH "  lib/liballot.so\n", "line 3" },
		{ FIRST "x" HASH "  liballot.so\n", "line 2" },
		{ FIRST "0011  liballot.so\n", "64 lower-case digits" },
		{ FIRST "AA112233445566778899aabbccddeeff00112233445566778899aabbccddeeff  a\n",
		  "lower-case" },
		{ FIRST HASH "  a-name-that-is-longer-than-any-library-has-ever-had-in-the-history\n",
		  "line 2" },
	};
	struct error err;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(manifest_parse(rows[i].text, strlen(rows[i].text), &manifest, &err),
				 -EINVAL);
		if (!strstr(err.text, rows[i].word))
			fail_msg("%zu: %s", i, err.text);
	}
	assert_int_equal(manifest_parse(FIRST, strlen(FIRST) + 3, &manifest, &err), -EINVAL);
	assert_non_null(strstr(err.text, "NUL"));
}

static void test_too_many(void **state)
{
	char text[8192] = FIRST;
	struct error err;
	for (unsigned i = 0; i <= MANIFEST_MAX_ENTRIES; i++)
		strcat(text, HASH "  a\n");
	assert_int_equal(manifest_parse(text, strlen(text), &manifest, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 66: more than 64 files"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
