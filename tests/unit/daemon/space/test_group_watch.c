/* Watching an MPS group's control daemon. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/space/group_inside.h"
#include "daemon/util/procfs.h"

/* An eventfd stands for the pidfd of a control daemon that no signal ends. */
static void test_a_killed_control_daemon_that_stays_is_reported(void **state)
{
	static struct card card;
	struct mps_group *g = calloc(1, sizeof(*g));
	assert_non_null(g);
	g->record.card = &card;
	strcpy(g->record.group, "g");
	g->log_fd = -1;
	g->pidfd = eventfd(0, EFD_CLOEXEC);
	assert_true(g->pidfd >= 0);
	g->state = MPS_ENDING;
	g->begun_ns = clock_now_ns();
	mps_watch_due(g, 0);
	assert_string_equal(g->why, "");
	g->begun_ns -= 11 * NSEC_PER_SEC;
	mps_watch_due(g, 0);
	assert_non_null(strstr(g->why, "has not exited"));
	/* It may still end, so it is watched further. */
	assert_int_equal(g->state, MPS_ENDING);
	assert_true(g->pidfd >= 0);
	close(g->pidfd);
	free(g);
}

/* This process stands for the control daemon, its child for a server. */
static void test_children_of_a_reused_pid_are_left_alone(void **state)
{
	struct mps_group *g = calloc(1, sizeof(*g));
	int status;
	assert_non_null(g);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	g->pidfd = eventfd(0, EFD_CLOEXEC);
	g->record.pid = getpid();
	assert_int_equal(procfs_start_time(getpid(), &g->record.start_time), 0);
	g->record.start_time--;
	mps_kill(g);
	assert_int_equal(g->old_count, 0);
	g->record.start_time++;
	mps_kill(g);
	assert_int_equal(g->old_count, 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(g->pidfd);
	free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_killed_control_daemon_that_stays_is_reported),
		cmocka_unit_test(test_children_of_a_reused_pid_are_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
