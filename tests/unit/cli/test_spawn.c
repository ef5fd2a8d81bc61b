#include "test.h"

#include <signal.h>
#include <sys/stat.h>

#include "cli/spawn.h"
#include "../scratch.h"

static char log_path[96], server[96];

static int make_paths(void **state)
{
	if (make_scratch(state) < 0)
		return -1;
	snprintf(log_path, sizeof(log_path), "%s/log", scratch);
	snprintf(server, sizeof(server), "%s/server", scratch);
	return 0;
}

static int spawn(const char *script, int timeout_ms, pid_t *ret_pid, struct error *err)
{
	char *argv[] = { server, NULL };
	FILE *file = fopen(server, "w");

	fprintf(file, "#!/bin/sh\n%s\n", script);
	fclose(file);
	chmod(server, 0755);
	return spawn_server(argv, log_path, timeout_ms, ret_pid, err);
}

static void test_ready(void **state)
{
	struct error err;
	pid_t pid = 0;

	assert_int_equal(spawn("ls -l /proc/$$/fd >&2; echo >&3; exec sleep 5", 5000, &pid, &err),
			 0);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, 0), 0);
	/* A session of its own, and not our child. */
	assert_int_equal(getsid(pid) == getsid(0), 0);
	kill(pid, SIGKILL);
}

static void test_failure_says_why(void **state)
{
	struct error err;

	assert_int_equal(spawn("echo first >&2; echo 'server: the reason' >&2; exit 1", 5000, NULL,
			       &err),
			 -EIO);
	assert_string_equal(err.text, "the reason");
	assert_int_equal(spawn("echo '<3>other reason'; exit 1", 5000, NULL, &err), -EIO);
	assert_string_equal(err.text, "other reason");
	unlink(log_path);
	assert_int_equal(spawn("exit 1", 5000, NULL, &err), -EIO);
	assert_non_null(strstr(err.text, "ended before it was ready"));
}

static void test_slow_is_killed(void **state)
{
	struct error err;

	assert_int_equal(spawn("exec sleep 5", 200, NULL, &err), -ETIMEDOUT);
}

static void test_not_there(void **state)
{
	char *argv[] = { (char *)"/nonexistent/server", NULL };
	struct error err;

	assert_int_equal(spawn_server(argv, log_path, 1000, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/server"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ready, make_paths, remove_scratch),
		cmocka_unit_test_setup_teardown(test_failure_says_why, make_paths, remove_scratch),
		cmocka_unit_test_setup_teardown(test_slow_is_killed, make_paths, remove_scratch),
		cmocka_unit_test_setup_teardown(test_not_there, make_paths, remove_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
