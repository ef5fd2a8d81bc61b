/* Files that are replaced as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/util/whole_file.h"

#define MOST 64

static char dir[] = "/tmp/allot-whole-XXXXXX", path[64], other[64];

static int begin(void **state)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	return 0;
}

static int end(void **state)
{
	unlink(path);
	unlink(other);
	return rmdir(dir); /* fails where a file beside it was left */
}

static void take(void *data, char *line)
{
	strcat(strcat(data, line), "|");
}

static void test_lines(void **state)
{
	char seen[MOST] = "";
	assert_int_equal(whole_file_write_lines(path, "first\n\nsecond\n", true), 0);
	assert_int_equal(whole_file_read_lines(path, MOST, take, seen), 0);
	assert_string_equal(seen, "first|second|");
	assert_int_equal(whole_file_write_lines(path, "", true), 0);
	assert_int_equal(whole_file_write_lines(path, "", true), 0);
	assert_int_equal(whole_file_read_lines(path, MOST, take, seen), -ENOENT);
}

static void test_bounds(void **state)
{
	cleanup_free char *text = NULL;
	size_t size;
	char full[MOST];
	memset(full, 'x', sizeof(full));
	assert_int_equal(whole_file_write(path, full, sizeof(full), false), 0);
	assert_int_equal(whole_file_read(path, MOST - 1, &text, &size), -EFBIG);
	assert_int_equal(whole_file_read(path, MOST, &text, &size), 0);
	assert_int_equal(size, MOST);
	assert_int_equal(strlen(text), MOST);
}

static void test_no_plain_file(void **state)
{
	cleanup_free char *text = NULL;
	size_t size;
	assert_int_equal(whole_file_write(other, "secret", 6, false), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(whole_file_read(path, MOST, &text, &size), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(whole_file_read(path, MOST, &text, &size), -EINVAL);
}

static void test_foreign(void **state)
{
	cleanup_free char *text = NULL;
	size_t size;
	struct error err;
	assert_int_equal(whole_file_write(other, "seen", 4, false), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(whole_file_read_foreign(path, 4, &text, &size, NULL, &err), 0);
	assert_string_equal(text, "seen");
	assert_int_equal(whole_file_read_foreign(path, 3, &text, &size, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, ": must be a file of 1 to 3 bytes"));
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(whole_file_read_foreign(path, 4, &text, &size, NULL, &err), -EINVAL);
	assert_int_equal(whole_file_read_foreign("/none", 4, &text, &size, NULL, &err), -ENOENT);
}

static void test_the_old_one_stays(void **state)
{
	char fresh[80], seen[MOST] = "";
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	assert_int_equal(whole_file_write_lines(path, "old\n", false), 0);
	assert_int_equal(mkdir(fresh, 0700), 0);
	assert_int_equal(whole_file_write_lines(path, "new\n", false), -EISDIR);
	assert_int_equal(whole_file_read_lines(path, MOST, take, seen), 0);
	assert_string_equal(seen, "old|");
	assert_int_equal(rmdir(fresh), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, begin, end),
		cmocka_unit_test_setup_teardown(test_bounds, begin, end),
		cmocka_unit_test_setup_teardown(test_no_plain_file, begin, end),
		cmocka_unit_test_setup_teardown(test_foreign, begin, end),
		cmocka_unit_test_setup_teardown(test_the_old_one_stays, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
