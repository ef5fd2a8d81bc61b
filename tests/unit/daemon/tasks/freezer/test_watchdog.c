/* Frozen processes are thawed when the process that froze them is killed, and from the file when both were killed. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup_scene.h"
#include "daemon/tasks/freezer/frozen_list.h"
#include "daemon/tasks/freezer/watchdog.h"

static bool make_either(struct cgroup_scene *s, unsigned version)
{
	if (cgroup_scene_make(s, version == 2))
		return true;
	print_message("version %u: not to be had here\n", version);
	return false;
}

static int watchdog_pid(const struct watchdog *w)
{
	char path[64], line[128];
	int pid = -1;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", watchdog_pidfd(w));
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "Pid: %d", &pid) != 1)
		;
	if (file)
		fclose(file);
	return pid;
}

/* A daemon with only its freezing part; reports its progress, then waits to be killed. */
static _Noreturn void pretend_daemon(const struct cgroup *cgroup, int ready_fd)
{
	struct watchdog *w;
	struct error err = { 0 };
	if (watchdog_start(&w, &err) < 0 || watchdog_add(w, cgroup) < 0 ||
	    cgroup_freeze(cgroup) < 0 || cgroup_wait_frozen(cgroup, 5000) != 1)
		_exit(1);
	int pid = watchdog_pid(w);
	ssize_t n = write(ready_fd, &pid, sizeof(pid));
	(void)n;
	pause();
	_exit(0);
}

static pid_t start_daemon(const struct cgroup *cgroup, int *ret_watchdog)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0)
		pretend_daemon(cgroup, fds[1]);
	close(fds[1]);
	assert_int_equal(read(fds[0], ret_watchdog, sizeof(*ret_watchdog)), sizeof(*ret_watchdog));
	close(fds[0]);
	return pid;
}

static void test_killed_daemon(void **state)
{
	for (unsigned v = 1; v <= 2; v++) {
		struct cgroup_scene s;
		int watchdog;
		if (!make_either(&s, v))
			continue;
		cgroup_scene_start(&s);
		/* The watchdog ends as an orphan: here, where it can be waited for. */
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		pid_t daemon = start_daemon(&s.cgroup, &watchdog);
		assert_false(cgroup_scene_runs(&s, 50));
		/* As a service manager does: polite to all, then not. */
		kill(watchdog, SIGTERM);
		kill(daemon, SIGKILL);
		assert_int_equal(waitpid(daemon, NULL, 0), daemon);
		assert_true(cgroup_scene_runs(&s, 5000));
		int status;
		assert_int_equal(waitpid(watchdog, &status, 0), watchdog);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		prctl(PR_SET_CHILD_SUBREAPER, 0);
		cgroup_scene_end(&s);
	}
}

static void test_what_was_thawed_is_forgotten(void **state)
{
	struct cgroup_scene s;
	struct watchdog *w;
	struct error err = { 0 };
	if (!make_either(&s, 2) && !make_either(&s, 1)) {
		skip();
		return;
	}
	cgroup_scene_start(&s);
	assert_int_equal(watchdog_start(&w, &err), 0);
	assert_int_equal(watchdog_add(w, &s.cgroup), 0);
	watchdog_remove(w, &s.cgroup);
	assert_int_equal(cgroup_freeze(&s.cgroup), 0);
	assert_int_equal(cgroup_wait_frozen(&s.cgroup, 5000), 1);
	/* Frozen by someone else meanwhile: not ours to thaw. */
	watchdog_stop(w);
	assert_int_equal(cgroup_is_frozen(&s.cgroup), 1);
	cgroup_scene_end(&s);
}

static void test_limits(void **state)
{
	struct cgroup cgroup = { .is_v2 = true };
	struct watchdog *w;
	struct error err = { 0 };
	assert_int_equal(watchdog_start(&w, &err), 0);
	for (unsigned i = 0; i <= WATCHDOG_MAX; i++) {
		snprintf(cgroup.dir, sizeof(cgroup.dir), "/nowhere/%u", i);
		assert_int_equal(watchdog_add(w, &cgroup), i < WATCHDOG_MAX ? 0 : -ENOSPC);
	}
	watchdog_remove(w, &(struct cgroup){ .is_v2 = true, .dir = "/nowhere/7" });
	assert_int_equal(watchdog_add(w, &cgroup), 0);
	/* Twice is once. */
	assert_int_equal(watchdog_add(w, &cgroup), 0);
	kill(watchdog_pid(w), SIGKILL);
	while (watchdog_add(w, &cgroup) != -EPIPE)
		usleep(1000);
	assert_null(watchdog_stop(w));
	assert_null(watchdog_stop(NULL));
}

/* The answer to the first note comes after its time: the second must not be answered by it. */
static void test_a_late_answer(void **state)
{
	const struct cgroup first = { .is_v2 = true, .dir = "/nowhere/1" };
	const struct cgroup second = { .is_v2 = true, .dir = "/nowhere/2" };
	struct watchdog *w;
	struct error err = { 0 };
	assert_int_equal(watchdog_start(&w, &err), 0);
	struct pollfd died = { .fd = watchdog_pidfd(w), .events = POLLIN };
	int pid = watchdog_pid(w);
	kill(pid, SIGSTOP);
	assert_int_equal(watchdog_add(w, &first), -EPIPE);
	kill(pid, SIGCONT);
	usleep(100000);
	assert_int_equal(watchdog_add(w, &second), -EPIPE);
	assert_int_equal(poll(&died, 1, 5000), 1);
	watchdog_stop(w);
}

/* If the child is stopped by a signal, the daemon must not wait for room in the socket, nor at its own end. */
static void test_stopped_child(void **state)
{
	const struct cgroup cgroup = { .is_v2 = true, .dir = "/nowhere/1" };
	struct watchdog *w;
	struct error err = { 0 };
	assert_int_equal(watchdog_start(&w, &err), 0);
	struct pollfd died = { .fd = watchdog_pidfd(w), .events = POLLIN };
	kill(watchdog_pid(w), SIGSTOP);
	for (unsigned i = 0; i < 100000 && poll(&died, 1, 0) == 0; i++)
		watchdog_remove(w, &cgroup);
	assert_int_equal(poll(&died, 1, 5000), 1);
	watchdog_stop(w);
	assert_int_equal(watchdog_start(&w, &err), 0);
	kill(watchdog_pid(w), SIGSTOP);
	assert_null(watchdog_stop(w));
}

static void test_state_file(void **state)
{
	struct cgroup_scene s;
	char dir[] = "/tmp/allot-test-XXXXXX", path[64];
	if (!make_either(&s, 2) && !make_either(&s, 1)) {
		skip();
		return;
	}
	const struct cgroup alien = { .is_v2 = s.cgroup.is_v2, .dir = "/etc" };
	const struct cgroup *list[] = { &alien, &s.cgroup };
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/frozen", dir);
	cgroup_scene_start(&s);
	assert_int_equal(frozen_list_write(dir, list, 2), 0);
	assert_int_equal(cgroup_freeze(&s.cgroup), 0);
	assert_int_equal(cgroup_wait_frozen(&s.cgroup, 5000), 1);
	assert_int_equal(frozen_list_thaw(dir, &s.cgroups), 1);
	assert_true(cgroup_scene_runs(&s, 1000));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(frozen_list_thaw(dir, &s.cgroups), 0);
	assert_int_equal(frozen_list_write(dir, list, 0), 0);
	assert_true(frozen_list_write("/nowhere", list, 1) < 0);
	assert_int_equal(rmdir(dir), 0);
	cgroup_scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_daemon),
		cmocka_unit_test(test_what_was_thawed_is_forgotten),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_a_late_answer),
		cmocka_unit_test(test_stopped_child),
		cmocka_unit_test(test_state_file),
	};
	return cmocka_run_group_tests_name("watchdog", tests, NULL, NULL);
}
