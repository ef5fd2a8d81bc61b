/* Lines that others bring about at will. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

#define MOST 1000

static unsigned count_lines(const char *text, const char *word)
{
	unsigned count = 0;
	while ((text = strstr(text, word))) {
		count++;
		text++;
	}
	return count;
}

static void say(unsigned key, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		log_info_of(key, "refused %u", key);
}

static void test_a_flood_leaves_out_most_and_hides_nobody(void **state)
{
	static char text[65536];
	int fds[2], saved = dup(STDERR_FILENO);
	assert_int_equal(pipe(fds), 0);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	say(1, MOST);
	say(2, 1);
	sleep(2); /* until another line is due */
	say(1, 1);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(fds[1]);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_in_range(count_lines(text, "refused 1"), 11, 50);
	assert_int_equal(count_lines(text, "refused 2"), 1);
	assert_in_range(count_lines(text, "more like this suppressed) refused 1"), 1, 40);
	close(fds[0]);
	close(saved);
}

static void test_no_place_fills_the_log(void **state)
{
	static char text[65536];
	int fds[2], saved = dup(STDERR_FILENO);
	assert_int_equal(pipe(fds), 0);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	for (unsigned i = 0; i < MOST; i++)
		log_warning("flood %u", i);
	log_warning("another place");
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(fds[1]);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_in_range(count_lines(text, "flood"), 10 * LOG_LIMIT_KEYS, MOST / 2);
	assert_int_equal(count_lines(text, "another place"), 1);
	close(fds[0]);
	close(saved);
}

/* A pod, a file or a process may be called like that. */
static void test_a_name_begins_no_line(void **state)
{
	char text[4096] = "", longest[2000];
	int fds[2], saved = dup(STDERR_FILENO);
	memset(longest, '\n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(pipe(fds), 0);
	assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
	log_info("%s is denied", "x\nallotd: leads, as forged\x1b[31m\r\t\xff");
	log_info_of(3, "%s", "y\nz");
	log_info("%s", longest);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(fds[1]);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_int_equal(count_lines(text, "\n"), 3);
	assert_non_null(strstr(text, "allotd: leads, as forged"));
	assert_null(strpbrk(text, "\x1b\r\t\xff"));
	close(fds[0]);
	close(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_begins_no_line),
		cmocka_unit_test(test_no_place_fills_the_log),
		cmocka_unit_test(test_a_flood_leaves_out_most_and_hides_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
