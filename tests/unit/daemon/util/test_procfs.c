#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/util/procfs.h"

struct child {
	int pid;
	uint64_t start_time;
};

static int setup(void **state)
{
	struct child *child = calloc(1, sizeof(*child));
	child->pid = fork();
	if (!child->pid) {
		pause();
		_exit(0);
	}
	*state = child;
	return procfs_start_time(child->pid, &child->start_time);
}

static int teardown(void **state)
{
	struct child *child = *state;
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	free(child);
	return 0;
}

static void test_open_process(void **state)
{
	const struct child *child = *state;
	int pidfd = -1;
	assert_int_equal(procfs_open_process(child->pid, child->start_time, &pidfd), 0);
	assert_int_equal(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	close(pidfd);
}

static void test_open_process_whose_pid_was_reused(void **state)
{
	const struct child *child = *state;
	int pidfd = -1;
	assert_int_equal(procfs_open_process(child->pid, child->start_time + 1, &pidfd), -ESRCH);
	assert_int_equal(pidfd, -1);
}

static void test_open_zombie(void **state)
{
	const struct child *child = *state;
	siginfo_t ended;
	int pidfd = -1;
	kill(child->pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child->pid, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(procfs_open_process(child->pid, child->start_time, &pidfd), -ESRCH);
	assert_int_equal(pidfd, -1);
}

/* A daemon that has no descriptor left must not take a process for ended. */
static void test_open_process_without_a_descriptor(void **state)
{
	const struct child *child = *state;
	struct rlimit before, none = { 0 };
	int pidfd = -1;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int r = procfs_open_process(child->pid, child->start_time, &pidfd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(r, -EMFILE);
	assert_int_equal(pidfd, -1);
}

static void test_unescape(void **state)
{
	char text[] = "/a\\040b\\134\\011/c\\";
	procfs_unescape(text);
	assert_string_equal(text, "/a b\\\t/c\\");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_open_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_process_whose_pid_was_reused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_open_zombie, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_process_without_a_descriptor, setup,
						teardown),
		cmocka_unit_test(test_unescape),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
