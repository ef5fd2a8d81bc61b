/* The output of an MPS control daemon and its servers, as of driver 580; and which process is whose child. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/space/proc_scan.h"

#define CONTROL "[2026-11-23 00:09:33.437 Control   432] "
#define SERVER "[2026-11-23 00:09:44.594 Server   539] "

static void test_lines(void **state)
{
	static const struct {
		const char *line;
		enum mps_line what;
		int pid;
	} rows[] = {
		{ CONTROL "NEW SERVER 443: Ready", MPS_LINE_OTHER, 0 },
		{ CONTROL "Server 443 exited with status 0", MPS_LINE_SERVER_ENDED, 443 },
		{ CONTROL "Try shutting down server 700, backoff is disabled",
		  MPS_LINE_SERVER_QUITS, 700 },
		{ SERVER "Client {PID: 556, Context ID: 1} exiting. Worker is in reset. Number of "
			 "active client contexts is 1.",
		  MPS_LINE_CLIENT_FAILED, 556 },
		{ SERVER "Client {PID: 519, Context ID: 1} exiting. Number of active client "
			 "contexts is 0.",
		  MPS_LINE_OTHER, 0 },
		{ SERVER "Server failed to recevie command with status 806, assuming client {PID: "
			 "519, Context ID: 1} exit",
		  MPS_LINE_OTHER, 0 },
		{ SERVER "Device-level fatal exception encountered", MPS_LINE_SERVER_FAULT, 539 },
		{ CONTROL "NEW CLIENT 467 from user 1234: Server already exists", MPS_LINE_OTHER, 0 },
		{ CONTROL "Cmd:get_server_list", MPS_LINE_OTHER, 0 },
		{ "Server exited", MPS_LINE_OTHER, 0 },
		{ "[", MPS_LINE_OTHER, 0 },
		{ "", MPS_LINE_OTHER, 0 },
	};
	int pid;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(mps_read_line(rows[i].line, &pid), rows[i].what);
		assert_int_equal(pid, rows[i].pid);
	}
	assert_string_equal(mps_line_text(CONTROL "NEW UI"), "NEW UI");
	assert_string_equal(mps_line_text("NEW UI"), "NEW UI");
	assert_string_equal(mps_line_text("[no end"), "[no end");
}

/* This process as the control daemon. */
static void test_children(void **state)
{
	struct mps_processes sight;
	mps_scan(getpid(), &sight);
	assert_int_equal(sight.server_count, 0);
	assert_false(sight.is_stopped);
	pid_t child = fork();
	if (child == 0)
		for (;;)
			pause();
	mps_scan(getpid(), &sight);
	assert_int_equal(sight.server_count, 1);
	assert_int_equal(sight.server[0].pid, child);
	assert_false(sight.server[0].is_stopped);
	kill(child, SIGSTOP);
	waitpid(child, NULL, WUNTRACED);
	mps_scan(getpid(), &sight);
	assert_true(sight.server[0].is_stopped);
	/* A zombie does not count. */
	kill(child, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	mps_scan(getpid(), &sight);
	assert_int_equal(sight.server_count, 0);
	waitpid(child, NULL, 0);
}

static void *wait_on(void *unused)
{
	for (;;)
		pause();
	return NULL;
}

static bool comes_true(bool (*is_so)(const struct mps_server *), const struct mps_server *server)
{
	for (int i = 0; i < 1000; i++) {
		if (is_so(server))
			return true;
		usleep(10000);
	}
	return false;
}

static bool is_out_of_sight(const struct mps_server *server)
{
	struct mps_processes sight;
	mps_scan(getpid(), &sight);
	return sight.server_count == 0;
}

/* The main thread ends first, as in a killed process while the driver frees resources of its other threads. */
static void test_end(void **state)
{
	struct mps_processes sight;
	pthread_t thread;
	pid_t child = fork();
	if (child == 0) {
		pthread_create(&thread, NULL, wait_on, NULL);
		raise(SIGSTOP);
		pthread_exit(NULL);
	}
	waitpid(child, NULL, WUNTRACED);
	mps_scan(getpid(), &sight);
	assert_int_equal(sight.server_count, 1);
	const struct mps_server server = sight.server[0];
	assert_false(mps_is_over(&server));
	struct mps_server before = server;
	before.start_time--;
	assert_true(mps_is_over(&before)); /* another process has its pid */
	kill(child, SIGCONT);
	assert_true(comes_true(is_out_of_sight, &server));
	assert_false(mps_is_over(&server));
	kill(child, SIGKILL);
	assert_true(comes_true(mps_is_over, &server));
	waitpid(child, NULL, 0);
	assert_true(mps_is_over(&server));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines),
					    cmocka_unit_test(test_children),
					    cmocka_unit_test(test_end) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
