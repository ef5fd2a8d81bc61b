/* Connections of the control socket, over socketpairs: lines, limits, slow clients. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/control.h"

#define LIST "{\"version\":1,\"op\":\"list\"}\n"

static int connect_pair(struct fixture *f)
{
	int fds[2];
	struct error err;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(control_serve(f->node->control, fds[1], &err), 0);
	return fds[0];
}

static void put(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What has come; "" when nothing. */
static const char *get(struct fixture *f, int fd)
{
	static char text[262144];
	fixture_turn(f, 10);
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static unsigned count_lines(const char *text)
{
	unsigned count = 0;
	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void test_several_lines_at_once(void **state)
{
	struct fixture *f = *state;
	int fd = connect_pair(f);
	put(fd, LIST "nonsense\n" LIST);
	const char *text = get(f, fd);
	assert_int_equal(count_lines(text), 3);
	assert_non_null(strstr(text, "not JSON"));
	close(fd);
}

static void test_a_line_in_pieces(void **state)
{
	struct fixture *f = *state;
	int fd = connect_pair(f);
	for (const char *c = LIST; *c; c++) {
		char piece[2] = { *c, '\0' };
		put(fd, piece);
		if (c[1])
			assert_string_equal(get(f, fd), "");
	}
	assert_non_null(strstr(get(f, fd), "\"ok\":true"));
	close(fd);
}

static void test_long_line(void **state)
{
	struct fixture *f = *state;
	int fd = connect_pair(f);
	char *text = malloc(CONTROL_LINE_MAX + 5000);
	memset(text, ' ', CONTROL_LINE_MAX + 5000);
	size_t sent = 0;
	for (unsigned i = 0; i < 200 && sent < CONTROL_LINE_MAX + 5000; i++) {
		ssize_t n = send(fd, text + sent, CONTROL_LINE_MAX + 5000 - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		fixture_turn(f, 1);
	}
	fixture_until(f, control_connections(f->node->control) == 0);
	free(text);
	close(fd);
}

static void test_a_client_that_does_not_read(void **state)
{
	struct fixture *f = *state;
	int slow = connect_pair(f), other = connect_pair(f);
	int small = 4096;
	setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	/* Far more than the sockets hold: the rest must stay unread, and cost no memory. */
	for (unsigned i = 0; i < 20000; i++) {
		if (send(slow, LIST, strlen(LIST), MSG_NOSIGNAL) < 0)
			break;
		if (i % 100 == 0)
			fixture_turn(f, 1);
	}
	put(other, LIST);
	assert_non_null(strstr(get(f, other), "\"ok\":true"));
	unsigned lines = 0;
	for (const char *text = get(f, slow); *text; text = get(f, slow))
		lines += count_lines(text);
	assert_true(lines > 100);
	close(slow);
	close(other);
	fixture_until(f, control_connections(f->node->control) == 0);
}

static void test_half_closed(void **state)
{
	struct fixture *f = *state;
	int fd = connect_pair(f);
	put(fd, LIST);
	shutdown(fd, SHUT_WR);
	assert_non_null(strstr(get(f, fd), "\"ok\":true"));
	fixture_until(f, control_connections(f->node->control) == 0);
	close(fd);
}

static void test_the_end_of_a_connection_lets_go(void **state)
{
	struct fixture *f = *state;
	int fd = connect_pair(f);
	put(fd, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"hold\":true}\n");
	assert_non_null(strstr(get(f, fd), "\"ok\":true"));
	assert_int_equal(f->node->tenant_count, 1);
	close(fd);
	fixture_until(f, f->node->tenant_count == 0);
}

static void test_too_many(void **state)
{
	struct fixture *f = *state;
	int fds[2];
	struct error err;
	static int open_fds[CONTROL_MAX_CONNECTIONS];
	for (unsigned i = 0; i < CONTROL_MAX_CONNECTIONS; i++)
		open_fds[i] = connect_pair(f);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(control_serve(f->node->control, fds[0], &err), -EBUSY);
	close(fds[0]);
	close(fds[1]);
	for (unsigned i = 0; i < CONTROL_MAX_CONNECTIONS; i++)
		close(open_fds[i]);
	fixture_until(f, control_connections(f->node->control) == 0);
}

#define test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_several_lines_at_once),
		test(test_a_line_in_pieces),
		test(test_long_line),
		test(test_a_client_that_does_not_read),
		test(test_half_closed),
		test(test_the_end_of_a_connection_lets_go),
		test(test_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
