#include "test.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cli/child_output.h"

static char text[16];

static int run(const char *script, bool with_errors, int limit_ms, int *ret_status)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	struct error err;

	return child_output(argv, with_errors, limit_ms, text, sizeof(text), ret_status, &err);
}

static void test_output(void **state)
{
	int status;

	assert_int_equal(run("echo a; echo b >&2; exit 3", true, -1, &status), 0);
	assert_string_equal(text, "a\nb\n");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	assert_int_equal(run("echo a; echo b >&2; cat", false, -1, NULL), 0);
	assert_string_equal(text, "a\n");
	assert_int_equal(run("echo 0123456789abcdefghi", false, 5000, NULL), 0);
	assert_string_equal(text, "0123456789abcde");
	/* More than a pipe holds: the program does not wait for ever. */
	assert_int_equal(run("head -c 200000 /dev/zero", false, -1, NULL), 0);
}

static void test_limit(void **state)
{
	uint64_t begin_ns = clock_now_ns();
	int status;

	assert_int_equal(run("echo a; exec sleep 60", false, 2000, &status), 0);
	assert_string_equal(text, "a\n");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(clock_now_ns() - begin_ns < 30 * NSEC_PER_SEC);
}

static void ignore(int number)
{
}

static void test_signal(void **state)
{
	struct sigaction action = { .sa_handler = ignore };
	struct itimerval often = { { 0, 10000 }, { 0, 10000 } }, never = { 0 };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(run("echo a; sleep 0.1; echo b", false, -1, NULL), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_string_equal(text, "a\nb\n");
}

static void test_missing_program(void **state)
{
	char *argv[] = { (char *)"/nowhere/program", NULL };
	char why[64];
	int status;

	assert_int_equal(child_output(argv, true, -1, why, sizeof(why), &status, NULL), 0);
	assert_string_equal(why, "/nowhere/program: No such file or directory");
	assert_int_equal(WEXITSTATUS(status), 127);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_missing_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
