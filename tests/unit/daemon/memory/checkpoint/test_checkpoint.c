/*
 * The daemon's side of a helper, against helpers with scripted answers: this program, started again. Each order takes the next
 * letter of a script: d, n, s for done, not, stuck; x: ends; h: hangs.
 */
#include <fcntl.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../captured_log.h"
#include "../../../scratch.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/state/node/node.h"

#define TIMEOUT_NS (100 * NSEC_PER_MSEC)
#define PATIENCE_NS (10 * NSEC_PER_SEC)

/* ---- the helper ---- */

static char next_letter(const char *file)
{
	char path[128], text[32] = "";
	snprintf(path, sizeof(path), "%.*s/script", (int)(strrchr(file, '/') - file), file);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	char letter = n > 0 ? text[0] : 'x';
	if (n > 0 && (ftruncate(fd, 0) < 0 || pwrite(fd, text + 1, (size_t)n - 1, 0) < 0))
		_exit(2);
	close(fd);
	return letter;
}

static int pretend_helper(char **argv)
{
	static struct helper_order order;
	while (recv(HELPER_FD, &order, sizeof(order), 0) == (ssize_t)sizeof(order)) {
		struct helper_answer answer = { 0 };
		char letter = next_letter(argv[4]);
		if (letter == 'h')
			pause();
		if (letter == 'x')
			return 0;
		answer.result = letter == 'd'   ? HELPER_DONE
				: letter == 'n' ? HELPER_NOT
						: HELPER_STUCK;
		snprintf(answer.text, sizeof(answer.text), "to %s: %c",
			 order.goal == CHECKPOINT_OUT ? "out" : "in", letter);
		send(HELPER_FD, &answer, sizeof(answer), MSG_NOSIGNAL);
	}
	return 0;
}

/* ---- the daemon ---- */

/* In place of the C library's: refuses while refuses_watches, as a kernel that is out of watches does. */
static bool refuses_watches;

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	if (refuses_watches && operation == EPOLL_CTL_ADD) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

static struct node node; /* large */
static struct checkpoint *checkpoint;
static unsigned changes;

static void count_change(void *data, struct checkpoint *c)
{
	assert_ptr_equal(data, &changes);
	changes++;
}

static int set_up(void **state)
{
	struct error err;
	make_scratch(state);
	config_default(&node.config);
	node.config.checkpoint_timeout_ns = TIMEOUT_NS;
	snprintf(node.run_dir, sizeof(node.run_dir), "%s", scratch);
	changes = 0;
	return loop_new(&node.loop, &err) < 0 ||
	       checkpoint_new(&node, "a", count_change, &changes, &checkpoint, &err) < 0;
}

static int tear_down(void **state)
{
	checkpoint = checkpoint_free(checkpoint);
	node.loop = loop_free(node.loop);
	return remove_scratch(state);
}

static void write_script(const char *script)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/script", scratch);
	FILE *f = fopen(path, "we");
	fputs(script, f);
	assert_int_equal(fclose(f), 0);
}

/* Gives an order and waits for the result. */
static enum checkpoint_place order_to(enum checkpoint_goal goal)
{
	static struct helper_order order;
	struct error err = { 0 };
	unsigned before = changes;
	uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
	order = (struct helper_order){
		.goal = goal, .process_count = 1, .bytes = { 7 }, .process = { { .pid = 1234 } }
	};
	if (checkpoint_order(checkpoint, &order, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(checkpoint_place(checkpoint),
			 goal == CHECKPOINT_OUT ? PLACE_LEAVING : PLACE_RETURNING);
	/* Not another one meanwhile. */
	assert_int_equal(checkpoint_order(checkpoint, &order, &err), -EBUSY);
	while (changes == before && clock_now_ns() < until_ns)
		assert_true(loop_step(node.loop, 100) >= 0);
	assert_int_equal(changes, before + 1);
	return checkpoint_place(checkpoint);
}

static void test_there_and_back(void **state)
{
	write_script("dd");
	assert_int_equal(order_to(CHECKPOINT_OUT), PLACE_OUT);
	assert_string_equal(checkpoint_error(checkpoint), "");
	assert_int_equal(checkpoint_bytes(checkpoint), 7);
	assert_int_equal(order_to(CHECKPOINT_IN), PLACE_IN);
	assert_int_equal(checkpoint_failed(checkpoint), 0);
}

static void test_refused(void **state)
{
	write_script("ndnd");
	assert_int_equal(order_to(CHECKPOINT_OUT), PLACE_IN);
	assert_string_equal(checkpoint_error(checkpoint), "to out: n");
	assert_int_equal(order_to(CHECKPOINT_OUT), PLACE_OUT);
	assert_string_equal(checkpoint_error(checkpoint), "");
	assert_int_equal(order_to(CHECKPOINT_IN), PLACE_OUT);
	assert_string_equal(checkpoint_error(checkpoint), "to in: n");
	assert_int_equal(order_to(CHECKPOINT_IN), PLACE_IN);
	assert_int_equal(checkpoint_failed(checkpoint), 2);
}

static void test_stuck_and_tried_again(void **state)
{
	write_script("sd");
	assert_int_equal(order_to(CHECKPOINT_OUT), PLACE_STUCK);
	assert_string_equal(checkpoint_error(checkpoint), "to out: s");
	assert_int_equal(order_to(CHECKPOINT_IN), PLACE_IN);
}

/* Whatever a helper had begun when it ended or hung, the next takes back. */
static void test_lost_while_it_leaves(void **state)
{
	static const char *const scripts[] = { "xd", "hd", "xhxd" };
	for (size_t i = 0; i < 3; i++) {
		write_script(scripts[i]);
		assert_int_equal(order_to(CHECKPOINT_OUT), PLACE_IN);
		assert_true(*checkpoint_error(checkpoint));
	}
}

static void test_lost_while_it_returns(void **state)
{
	write_script("dxd");
	assert_int_equal(order_to(CHECKPOINT_OUT), PLACE_OUT);
	assert_int_equal(order_to(CHECKPOINT_IN), PLACE_IN);
}

static void test_lost_again_and_again(void **state)
{
	write_script("xxxxxxxx");
	struct captured_log log = captured_log_begin();
	enum checkpoint_place place = order_to(CHECKPOINT_OUT);
	assert_int_equal(captured_log_end(&log, "another one takes over"), 3);
	assert_int_equal(place, PLACE_STUCK);
	write_script("d");
	assert_int_equal(order_to(CHECKPOINT_IN), PLACE_IN);
}

static void test_hangs_are_ended_in_time(void **state)
{
	uint64_t begun_ns = clock_now_ns();
	write_script("hd");
	assert_int_equal(order_to(CHECKPOINT_OUT), PLACE_IN);
	assert_non_null(strstr(checkpoint_error(checkpoint), "did not answer in time"));
	assert_true(clock_now_ns() - begun_ns >= TIMEOUT_NS);
	assert_true(clock_now_ns() - begun_ns < PATIENCE_NS);
}

/* No helper can be watched: the caller is told why. */
static void test_no_more_watches(void **state)
{
	static struct helper_order order = { .goal = CHECKPOINT_OUT };
	struct error err = { 0 };
	refuses_watches = true;
	assert_int_equal(checkpoint_order(checkpoint, &order, &err), -ENOSPC);
	refuses_watches = false;
	assert_int_equal(err.code, ENOSPC);
	assert_non_null(strstr(err.text, "can't watch the helper"));
	assert_int_equal(checkpoint_place(checkpoint), PLACE_IN);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], HELPER_OPTION))
		return pretend_helper(argv);
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_there_and_back),          TEST(test_refused),
		TEST(test_stuck_and_tried_again),   TEST(test_lost_while_it_leaves),
		TEST(test_lost_while_it_returns),   TEST(test_lost_again_and_again),
		TEST(test_hangs_are_ended_in_time), TEST(test_no_more_watches),
	};
	log_init("test");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
