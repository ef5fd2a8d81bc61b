#include "../test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/run/command_child.h"
#include "../../scratch.h"

static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
}

static void test_find(void **state)
{
	char path[PATHS_MAX], expected[128], search[200];
	struct error err;

	write_file("tool", "#!/bin/sh\n", 0755);
	write_file("data", "x", 0644);
	snprintf(search, sizeof(search), "/nonexistent:%s:/usr/bin:/bin", scratch);
	setenv("PATH", search, 1);
	assert_int_equal(child_find("tool", path, NULL), 0);
	snprintf(expected, sizeof(expected), "%s/tool", scratch);
	assert_string_equal(path, expected);
	assert_int_equal(child_find("sh", path, NULL), 0);
	assert_int_equal(child_exit_status(child_find("no-such-command", path, &err)), 127);
	assert_string_equal(err.text, "'no-such-command': command not found");
	assert_int_equal(child_exit_status(child_find("", path, NULL)), 127);
	assert_int_equal(child_exit_status(child_find("/nonexistent/x", path, NULL)), 127);
	assert_int_equal(child_exit_status(child_find("/tmp", path, &err)), 126);
	assert_non_null(strstr(err.text, "Is a directory"));
	assert_int_equal(child_exit_status(child_find("data", path, &err)), 126);
	assert_non_null(strstr(err.text, "Permission denied"));
}

/* Runs sh -c script as `allot run` would; returns the exit status. */
static int run_program(const char *path, char **argv, int signal_after_start)
{
	struct child child;
	int status = -1;
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	assert_int_equal(child_start(path, argv, environ, &child, NULL), 0);
	if (signal_after_start) {
		usleep(200000);
		kill(getpid(), signal_after_start);
	}
	while (!child_handle(&child, &status)) {
		struct pollfd p = { .fd = child.signal_fd, .events = POLLIN };

		assert_true(poll(&p, 1, 10000) > 0);
	}
	close(child.signal_fd);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return status;
}

static int run_script(const char *script, int signal_after_start)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };

	return run_program("/bin/sh", argv, signal_after_start);
}

static void test_statuses(void **state)
{
	assert_int_equal(run_script("exit 0", 0), 0);
	assert_int_equal(run_script("exit 42", 0), 42);
	assert_int_equal(run_script("kill -9 $$", 0), 128 + SIGKILL);
	assert_int_equal(run_script("kill -SEGV $$", 0), 128 + SIGSEGV);
}

static void test_signals_are_passed_on(void **state)
{
	assert_int_equal(run_script("exec sleep 10", SIGTERM), 128 + SIGTERM);
	assert_int_equal(run_script("exec sleep 10", SIGHUP), 128 + SIGHUP);
	assert_int_equal(run_script("trap 'exit 7' USR1; while :; do sleep 0.05; done", SIGUSR1), 7);
}

static void test_group_and_mask_are_ours(void **state)
{
	char script[200];
	sigset_t none;

	/* Whoever started the test may have blocked something. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Asked of the program itself: a shell sets a mask of its own. */
	char *argv[] = { (char *)"grep", (char *)"-q", (char *)"^SigBlk:.0*$",
			 (char *)"/proc/self/status", NULL };
	assert_int_equal(run_program("/bin/grep", argv, 0), 0);
	snprintf(script, sizeof(script), "test $(ps -o pgid= -p $$) = %d", (int)getpgrp());
	if (access("/usr/bin/ps", X_OK) == 0 || access("/bin/ps", X_OK) == 0)
		assert_int_equal(run_script(script, 0), 0);
}

static void test_start_fails(void **state)
{
	char *argv[] = { (char *)"x", NULL };
	char path[128];
	struct child child;
	struct error err;

	write_file("bad", "#!/no/such/interpreter\n", 0755);
	snprintf(path, sizeof(path), "%s/bad", scratch);
	assert_int_equal(child_exit_status(child_start(path, argv, environ, &child, &err)), 127);
	assert_non_null(strstr(err.text, "cannot be executed"));
	/* A script without #! is run by sh, as env(1) does. */
	write_file("plain", "exit 9\n", 0755);
	snprintf(path, sizeof(path), "%s/plain", scratch);
	assert_int_equal(child_start(path, argv, environ, &child, NULL), 0);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, make_scratch, remove_scratch),
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_signals_are_passed_on),
		cmocka_unit_test(test_group_and_mask_are_ours),
		cmocka_unit_test_setup_teardown(test_start_fails, make_scratch, remove_scratch),
	};

	/* Ignored ones would be inherited: by a job in the background, under nohup. */
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
