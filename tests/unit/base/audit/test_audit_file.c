/* The audit log's file: lines whole, also after a line that could not be, and after it was moved away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/audit/audit_file.h"

static char dir[] = "/tmp/allot-audit-XXXXXX";
static char path[64], moved[64];

static int setup(void **state)
{
	log_set_level(0);
	snprintf(path, sizeof(path), "%s/audit.log", dir);
	snprintf(moved, sizeof(moved), "%s/audit.log.1", dir);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	unlink(moved);
	rmdir(path);
	return 0;
}

static const char *text_of(const char *file)
{
	static char text[4096];
	FILE *in = fopen(file, "r");
	assert_non_null(in);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
	return text;
}

static void test_lines(void **state)
{
	struct audit_file file;
	struct stat st;
	audit_file_open(&file, path, "lost_total");
	assert_int_equal(audit_file_append(&file, "{\"a\":1}"), 0);
	audit_file_close(&file);
	/* The next daemon goes on behind it. */
	audit_file_open(&file, path, "lost_total");
	assert_int_equal(audit_file_append(&file, "{\"a\":2}"), 0);
	assert_string_equal(text_of(path), "{\"a\":1}\n{\"a\":2}\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(file.lines, 1);
	assert_int_equal(file.lost, 0);
	audit_file_close(&file);
}

static void test_moved_away(void **state)
{
	struct audit_file file;
	audit_file_open(&file, path, "lost_total");
	audit_file_append(&file, "1");
	assert_int_equal(rename(path, moved), 0);
	/* Until it is told, it writes to the file that it has. */
	audit_file_append(&file, "2");
	audit_file_reopen(&file);
	audit_file_append(&file, "3");
	assert_string_equal(text_of(moved), "1\n2\n");
	assert_string_equal(text_of(path), "3\n");
	audit_file_close(&file);
}

static void limit_to(rlim_t bytes)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full_within_a_line(void **state)
{
	struct audit_file file;
	signal(SIGXFSZ, SIG_IGN);
	audit_file_open(&file, path, "lost_total");
	audit_file_append(&file, "1234567");
	limit_to(12);
	assert_int_equal(audit_file_append(&file, "abcdefgh"), -ENOSPC);
	assert_int_equal(audit_file_append(&file, "x"), -EFBIG);
	assert_true(file.is_torn);
	assert_int_equal(file.lost, 2);
	assert_int_equal(file.unreported, 2);
	limit_to(RLIM_INFINITY);
	/* What is half there is no part of another line; a daemon that starts then sees it too. */
	audit_file_close(&file);
	audit_file_open(&file, path, "lost_total");
	assert_true(file.is_torn);
	assert_int_equal(audit_file_append(&file, "after"), 0);
	assert_int_equal(audit_file_append(&file, "it"), 0);
	assert_string_equal(text_of(path), "1234567\nabcd\nafter\nit\n");
	audit_file_close(&file);
}

static void test_what_it_can_not_be(void **state)
{
	struct audit_file file;
	/* Nobody reads the pipe, and a link may be anybody's. */
	assert_int_equal(mkfifo(path, 0600), 0);
	audit_file_open(&file, path, "lost_total");
	assert_int_equal(audit_file_append(&file, "1"), -EINVAL);
	unlink(path);
	assert_int_equal(symlink(moved, path), 0);
	assert_int_equal(audit_file_append(&file, "2"), -ELOOP);
	assert_int_not_equal(access(moved, F_OK), 0);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(audit_file_append(&file, "3"), -EISDIR);
	rmdir(path);
	/* Each line tries again. */
	assert_int_equal(audit_file_append(&file, "4"), 0);
	assert_int_equal(file.lost, 3);
	assert_string_equal(text_of(path), "4\n");
	audit_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved_away, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_within_a_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_it_can_not_be, setup, teardown),
	};
	if (!mkdtemp(dir))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
