/*
 * Openings of a device node, here and in another mount namespace with a node of its own. Needs root's capabilities; without
 * them the test checks that their lack is reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/tasks/watch/exec_events.h"
#include "daemon/tasks/watch/open_events.h"

struct scene {
	char dir[32], node[64], paths[128];
	struct loop *loop;
	struct open_events *open_events;
	int seen[64];
	unsigned seen_count;
};

static void opened(void *data, int pid)
{
	struct scene *s = data;
	if (s->seen_count < sizeof(s->seen) / sizeof(s->seen[0]))
		s->seen[s->seen_count++] = pid;
}

static bool saw(const struct scene *s, int pid)
{
	for (unsigned i = 0; i < s->seen_count; i++)
		if (s->seen[i] == pid)
			return true;
	return false;
}

static bool turn_until_seen(struct scene *s, int pid, unsigned ms)
{
	uint64_t end_ns = clock_now_ns() + ms * NSEC_PER_MSEC;
	while (!saw(s, pid) && clock_now_ns() < end_ns)
		loop_step(s->loop, 10);
	return saw(s, pid);
}

static int make_node(const char *path)
{
	int r = mknod(path, S_IFCHR | 0666, makedev(1, 3));
	if (r < 0)
		print_message("mknod: %s\n", strerror(errno));
	return r;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	strcpy(s->dir, "/tmp/allot-test-XXXXXX");
	if (!mkdtemp(s->dir) || loop_new(&s->loop, NULL) < 0)
		return -1;
	snprintf(s->node, sizeof(s->node), "%s/node", s->dir);
	snprintf(s->paths, sizeof(s->paths), "%s/none,%s", s->dir, s->node);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	open_events_stop(s->open_events);
	unlink(s->node);
	rmdir(s->dir);
	loop_free(s->loop);
	free(s);
	return 0;
}

/* Returns false, and prints what is missing. */
static bool may_watch(struct scene *s)
{
	struct error err = { 0 };
	if (open_events_start(s->loop, s->paths, opened, s, &s->open_events, &err) >= 0)
		return true;
	print_message("%s\n", err.text);
	assert_true(err.text[0] != '\0');
	return false;
}

/* The child waits for a signal before it opens the node, so that no event is missed. */
static pid_t start_child(struct scene *s, int *ret_go, void (*first)(const struct scene *))
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char c;
		if (first)
			first(s);
		close(fds[1]);
		if (read(fds[0], &c, 1) < 0)
			_exit(1);
		execl("/bin/cat", "cat", s->node, (char *)NULL);
		_exit(1);
	}
	close(fds[0]);
	*ret_go = fds[1];
	return pid;
}

static void finish(pid_t pid, int go)
{
	close(go);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_device_node(void **state)
{
	struct scene *s = *state;
	int go;
	if (make_node(s->node) < 0 || !may_watch(s)) {
		skip();
		return;
	}
	pid_t pid = start_child(s, &go, NULL);
	finish(pid, go);
	assert_true(turn_until_seen(s, pid, 2000));
	/* This process's own openings are not its business. */
	close(open(s->node, O_RDONLY));
	assert_false(turn_until_seen(s, getpid(), 50));
}

static void other_namespace(const struct scene *s)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", s->dir, "tmpfs", 0, NULL) < 0 || make_node(s->node) < 0)
		_exit(2);
}

/* A shell in a container: its start is seen first, then the files that it opens. */
static void exec_twice(const struct scene *s)
{
	char command[256];
	other_namespace(s);
	snprintf(command, sizeof(command), "read x; sleep 0.3; exec cat %s", s->node);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(1);
}

static void test_node_of_another_namespace(void **state)
{
	struct scene *s = *state;
	int status;
	if (!may_watch(s)) {
		skip();
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(STDIN_FILENO);
		exec_twice(s);
	}
	unsigned ms = open_events_has_connector(s->open_events) ? 2000 : 4000;
	bool seen = turn_until_seen(s, pid, ms);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
		print_message("no mount namespace to be had here\n");
		skip();
		return;
	}
	/* By a scan alone it may come too late: only the connector sees the beginning itself. */
	assert_true(seen || !open_events_has_connector(s->open_events));
}

static void test_node_that_is_made_later(void **state)
{
	struct scene *s = *state;
	int go;
	if (!may_watch(s) || make_node(s->node) < 0 || !open_events_has_connector(s->open_events)) {
		skip();
		return;
	}
	/* A namespace is scanned again after a second, when a program starts in it. */
	usleep(1100000);
	pid_t first = start_child(s, &go, NULL);
	finish(first, go);
	turn_until_seen(s, first, 200);
	pid_t second = start_child(s, &go, NULL);
	finish(second, go);
	assert_true(turn_until_seen(s, second, 2000));
}

static void test_bad_paths(void **state)
{
	struct scene *s = *state;
	struct error err = { 0 };
	struct open_events *o;
	assert_int_equal(open_events_start(s->loop, "relative", opened, s, &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'relative'"));
	assert_int_equal(open_events_start(s->loop, "/a,/b,/c,/d,/e", opened, s, &o, &err), -E2BIG);
	assert_null(open_events_stop(NULL));
}

static void test_only_programs_that_begin_wake(void **state)
{
	int fd = exec_events_open();
	if (fd < 0) {
		print_message("process connector: %s\n", strerror(-fd));
		skip();
		return;
	}
	while (exec_events_read(fd) > 0)
		;
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	bool seen = false;
	for (int other; (other = exec_events_read(fd)) > 0;)
		seen |= other == pid;
	assert_true(seen);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_device_node, setup, teardown),
		cmocka_unit_test_setup_teardown(test_node_of_another_namespace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_node_that_is_made_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_paths, setup, teardown),
		cmocka_unit_test(test_only_programs_that_begin_wake),
	};
	return cmocka_run_group_tests_name("open_events", tests, NULL, NULL);
}
