/* The daemon's actions against violating processes, with a daemon in this process. */
#include "../../fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../captured_log.h"
#include "daemon/tasks/violation/suspects.h"
#include "daemon/tasks/violation/violations.h"

#define LOG_BURST 10 /* lines of one key at once: base/log.h */
#define TENANTS (LOG_BURST + 2)

static struct tenant *make_tenant(struct fixture *f, unsigned number)
{
	char line[160], name[16];
	snprintf(name, sizeof(name), "t%u", number);
	snprintf(line, sizeof(line),
		 "{\"version\":1,\"op\":\"create\",\"name\":\"%s\",\"devices\":"
		 "[{\"index\":0,\"memory_bytes\":1048576}]}",
		 name);
	json_decref(fixture_ok(f, line));
	return node_find_tenant(f->node, name);
}

static int start_process(void)
{
	int pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* So a user cannot suppress messages about others by using many names. */
static void test_one_log_budget_for_a_user(void **state)
{
	struct fixture *f = *state;
	int pid[TENANTS];
	f->node->config.on_violation = ON_VIOLATION_FREEZE;
	for (unsigned i = 0; i < TENANTS; i++) {
		struct tenant *t = make_tenant(f, i);
		pid[i] = start_process();
		violations_note_over(f->node->violations, t, pid[i], VIOLATION_OVER_QUOTA, 0,
				     2 * GIB, GIB);
	}
	struct captured_log log = captured_log_begin();
	offenders_act(f->node->violations);
	assert_int_equal(captured_log_end(&log, "is stopped; allot resume lets it go on"),
			 LOG_BURST);
	for (unsigned i = 0; i < TENANTS; i++) {
		const struct suspect *s = suspects_find(f->node->violations, pid[i]);
		assert_non_null(s);
		assert_string_equal(offenders_action(s), "stopped");
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

/* Asking how a resume goes lets nothing go on, also when the offender has outlived its tenant. */
static void test_a_poll_resumes_nothing(void **state)
{
	struct fixture *f = *state;
	int pid = start_process(), status;
	f->node->config.on_violation = ON_VIOLATION_FREEZE;
	f->session.is_admin = true;
	violations_note_over(f->node->violations, make_tenant(f, 0), pid, VIOLATION_OVER_QUOTA, 0,
			     2 * GIB, GIB);
	offenders_act(f->node->violations);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"t0\"}"));
	json_decref(fixture_request(
		f, "{\"version\":1,\"op\":\"resume\",\"name\":\"t0\",\"poll\":true}"));
	const struct suspect *s = suspects_find(f->node->violations, pid);
	assert_string_equal(offenders_action(s), "stopped");
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"resume\",\"name\":\"t0\"}"));
	assert_string_equal(offenders_action(s), "resumed");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void limit_files(rlim_t files, struct rlimit limit)
{
	limit.rlim_cur = files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A lack of descriptors is logged once. It makes no offender of the process, and does not count as its end. */
static void test_an_offender_that_cannot_be_watched(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, 0);
	struct rlimit limit;
	int pid = start_process();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	struct captured_log log = captured_log_begin();
	int lowest = dup(STDERR_FILENO);
	close(lowest);
	limit_files((rlim_t)lowest + 1, limit); /* enough to find the process, but not to watch it */
	for (unsigned i = 0; i < 2; i++)
		violations_note_over(f->node->violations, t, pid, VIOLATION_OVER_QUOTA, 0, 2 * GIB,
				     GIB);
	limit_files(limit.rlim_cur, limit);
	assert_int_equal(captured_log_end(&log, "can't be watched: Too many open files"), 1);
	const struct suspect *s = suspects_find(f->node->violations, pid);
	assert_non_null(s);
	assert_false(s->is_offender);
	violations_note_over(f->node->violations, t, pid, VIOLATION_OVER_QUOTA, 0, 2 * GIB, GIB);
	assert_true(s->is_offender);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_log_budget_for_a_user, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_poll_resumes_nothing, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_an_offender_that_cannot_be_watched,
						fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("violations", tests, NULL, NULL);
}
