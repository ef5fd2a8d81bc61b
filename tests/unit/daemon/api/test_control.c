/* Connections of the control socket, over socketpairs: lines, limits, slow clients. */
#include "../fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "../foreign.h"
#include "daemon/api/control.h"
#include "daemon/util/peer.h"
#include "net/closer.h"
#include "net/loop.h"
#include "../../skip_unless_root.h"

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

/* The received text; "" if none. */
static const char *get(struct fixture *f, int fd)
{
	static char text[262144];
	fixture_turn(f, 10);
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Waits for something to come, as long as it takes. */
static const char *get_soon(struct fixture *f, int fd)
{
	static char text[262144];
	ssize_t n = -1;
	for (unsigned turn = 0; turn < 10000 && n <= 0; turn++) {
		loop_step(f->node->loop, 1);
		n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	}
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
	unsigned lines = 0;
	bool is_refused = false;
	for (int turn = 0; turn < 100 && lines < 3; turn++) {
		const char *text = get(f, fd);
		lines += count_lines(text);
		is_refused |= strstr(text, "not JSON") != NULL;
	}
	assert_int_equal(lines, 3);
	assert_true(is_refused);
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
	/* Far more than the sockets hold: the rest must stay unread, and use no memory. */
	for (unsigned i = 0; i < 20000; i++) {
		if (send(slow, LIST, strlen(LIST), MSG_NOSIGNAL) < 0)
			break;
		if (i % 100 == 0)
			fixture_turn(f, 1);
	}
	put(other, LIST);
	assert_non_null(strstr(get_soon(f, other), "\"ok\":true"));
	for (unsigned lines = 0; lines <= 100;) {
		const char *text = get_soon(f, slow);
		assert_true(*text);
		lines += count_lines(text);
	}
	close(slow);
	close(other);
	fixture_until(f, control_connections(f->node->control) == 0);
}

/* No reply is older than its request. Clients that wait at the same time get the same reply. */
static void test_one_list_for_all_waiting_clients(void **state)
{
	struct fixture *f = *state;
	int first = connect_pair(f), maker = connect_pair(f), last = connect_pair(f);
	put(first, LIST);
	put(maker, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"hold\":true}\n" LIST);
	put(last, LIST);
	assert_null(strstr(get(f, first), "\"name\":\"a\""));
	const char *made = strchr(get(f, maker), '\n');
	assert_non_null(strstr(made, "\"name\":\"a\""));
	assert_null(strstr(get(f, last), "\"name\":\"a\""));
	put(last, LIST);
	assert_non_null(strstr(get(f, last), "\"name\":\"a\""));
	close(first);
	close(maker);
	close(last);
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

/* Sent along with a request, and left in a connection that ends. */
static void test_a_descriptor_that_cannot_be_closed(void **state)
{
	struct fixture *f = *state;
	struct foreign_lingering lingering;
	int fd = connect_pair(f), other = connect_pair(f);
	uint64_t begun_ns = clock_now_ns();
	foreign_linger(&lingering);
	foreign_send(fd, LIST, strlen(LIST), lingering.fd);
	foreign_let_go(&lingering);
	fixture_until(f, control_connections(f->node->control) == 1);
	put(other, LIST);
	assert_non_null(strstr(get(f, other), "\"ok\":true"));
	assert_true(clock_now_ns() - begun_ns < 10 * NSEC_PER_SEC);
	/* Its user waits until it is closed. */
	struct error err;
	int fds[2];
	fixture_until(f, closer_is_stuck(getuid()));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(control_serve(f->node->control, fds[1], &err), -EBUSY);
	assert_non_null(strstr(err.text, "close() hangs on file descriptors that uid"));
	close(fds[0]);
	close(fds[1]);
	foreign_end(&lingering);
	fixture_until(f, !closer_is_stuck(getuid()));
	close(connect_pair(f));
	close(fd);
	close(other);
}

/* A socketpair has the credentials of the process that made it. */
static int connect_as_user(struct fixture *f, uid_t uid, struct error *err)
{
	int fds[2];
	assert_int_equal(seteuid(uid), 0);
	int r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(r, 0);
	if (control_serve(f->node->control, fds[1], err) >= 0)
		return fds[0];
	close(fds[0]);
	close(fds[1]);
	return -1;
}

/* The same of a process of theirs, which has ended. */
static int connect_as(struct fixture *f, uid_t uid, struct error *err)
{
	int pair[2], fds[2] = { -1, -1 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid_t child = fork();
	if (child == 0) {
		int own[2];
		if (setresuid(uid, uid, uid) == 0 &&
		    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, own) == 0) {
			foreign_send(pair[1], "a", 1, own[0]);
			foreign_send(pair[1], "b", 1, own[1]);
		}
		_exit(0);
	}
	for (unsigned i = 0; i < 2; i++)
		fds[i] = foreign_receive(pair[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(pair[0]);
	close(pair[1]);
	if (control_serve(f->node->control, fds[1], err) < 0) {
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	return fds[0];
}

static bool has_ended_now(struct fixture *f, int fd)
{
	char byte;
	fixture_turn(f, 1);
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN);
}

static bool has_ended(struct fixture *f, int fd)
{
	for (unsigned i = 0; i < 200; i++)
		if (has_ended_now(f, fd))
			return true;
	return false;
}

/*
 * Four users fill the connections that are not reserved for root. Another user and root are served, and the user with the
 * fewest connections loses none.
 */
static void test_users_who_fill_the_table(void **state)
{
	struct fixture *f = *state;
	struct error err;
	static int fds[4][CONTROL_MAX_PER_UID];
	skip_unless_root();
	f->node->is_private = false;
	int small = connect_as_user(f, 2000, &err);
	assert_true(small >= 0);
	for (unsigned i = 0; i < CONTROL_MAX_PER_UID; i++)
		for (unsigned u = 0; u < 4; u++)
			fds[u][i] = connect_as_user(f, 1001 + u, &err);
	assert_true(control_connections(f->node->control) <=
		    CONTROL_MAX_CONNECTIONS - CONTROL_KEPT_FOR_ROOT);
	int late = connect_as_user(f, 2001, &err);
	assert_true(late >= 0);
	put(late, LIST);
	assert_non_null(strstr(get(f, late), "\"ok\":true"));
	int root = connect_as_user(f, 0, &err);
	put(root, LIST);
	assert_non_null(strstr(get(f, root), "\"ok\":true"));
	assert_false(has_ended(f, small));
	unsigned ended = 0;
	for (unsigned u = 0; u < 4; u++)
		ended += has_ended(f, fds[u][0]); /* of one of them the longest idle */
	assert_int_equal(ended, 1);
	for (unsigned u = 0; u < 4; u++)
		for (unsigned i = 0; i < CONTROL_MAX_PER_UID; i++)
			if (fds[u][i] >= 0)
				close(fds[u][i]);
	close(small);
	close(late);
	close(root);
}

/* The first of the reply, as soon as it is there. */
/*
 * Four users fill the connections that are not reserved for root; this many of them hold a tenant by each connection. Then
 * another user connects.
 */
static void fill_and_come(struct fixture *f, unsigned holders)
{
	struct error err;
	static int fds[4][CONTROL_MAX_PER_UID];
	char request[256];
	int late[CONTROL_ASSURED];
	f->node->is_private = false;
	for (unsigned i = 0; i < CONTROL_MAX_PER_UID; i++)
		for (unsigned u = 0; u < 4; u++) {
			fds[u][i] = connect_as_user(f, 1001 + u, &err);
			if (fds[u][i] < 0)
				continue;
			snprintf(request, sizeof(request),
				 "{\"version\":1,\"op\":\"%s\",\"name\":\"u%u\",\"hold\":true,"
				 "\"devices\":[{\"index\":0,\"memory_bytes\":1048576}]}\n",
				 i ? "attach" : "create", u);
			put(fds[u][i], u < holders ? request : LIST);
			assert_non_null(strstr(get_soon(f, fds[u][i]), "\"ok\":true"));
		}
	for (unsigned i = 0; i < CONTROL_ASSURED; i++) {
		late[i] = connect_as_user(f, 2001, &err);
		assert_true(late[i] >= 0);
		put(late[i], LIST);
		assert_non_null(strstr(get_soon(f, late[i]), "\"ok\":true"));
	}
	assert_int_equal(connect_as_user(f, 2001, &err) < 0, holders == 4);
	for (unsigned i = 0; i < CONTROL_ASSURED; i++)
		close(late[i]);
	for (unsigned u = 0; u < 4; u++)
		for (unsigned i = 0; i < CONTROL_MAX_PER_UID; i++) {
			assert_false(u < holders && fds[u][i] >= 0 && has_ended_now(f, fds[u][i]));
			if (fds[u][i] >= 0)
				close(fds[u][i]);
		}
}

static void test_users_who_hold_tenants_by_most(void **state)
{
	skip_unless_root();
	fill_and_come(*state, 3);
}

static void test_users_who_hold_tenants_by_all(void **state)
{
	skip_unless_root();
	fill_and_come(*state, 4);
}

/* However much one user asks for, another's request is at most two behind. */
static void test_users_take_turns(void **state)
{
	struct fixture *f = *state;
	struct error err;
	int hostile[8];
	skip_unless_root();
	f->node->is_private = false;
	for (unsigned i = 0; i < 8; i++) {
		hostile[i] = connect_as(f, 1001, &err);
		for (unsigned j = 0; j < 50; j++)
			put(hostile[i], LIST);
	}
	int honest = connect_as(f, 1002, &err);
	put(honest, LIST);
	unsigned long before = f->node->requests;
	char text[65536];
	/* One step may have a full millisecond of requests, of which every second is the honest one's turn. */
	while (recv(honest, text, sizeof(text), MSG_DONTWAIT) <= 0)
		assert_true(loop_step(f->node->loop, 1000) >= 0);
	assert_true(f->node->requests - before < 8 * 50);
	for (unsigned i = 0; i < 8; i++)
		close(hostile[i]);
	close(honest);
}

/* The process that connected has ended; its pid could be anybody's, and is no command. */
static void test_a_command_of_a_process_that_has_ended(void **state)
{
	struct fixture *f = *state;
	struct error err;
	static const char request[] =
		"{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"command\":true}\n";
	skip_unless_root();
	for (unsigned old = 0; old < 2; old++) {
		peer_pretend_old_kernel(old);
		int fd = connect_as(f, 1001, &err);
		put(fd, request);
		assert_non_null(strstr(get(f, fd), "has ended"));
		assert_int_equal(f->node->tenant_count, 0);
		close(fd);
		fd = connect_pair(f);
		put(fd, request);
		assert_non_null(strstr(get(f, fd), "\"ok\":true"));
		assert_int_equal(node_find_tenant(f->node, "a")->command_pid, getpid());
		tenant_remove(node_find_tenant(f->node, "a"), NULL);
		close(fd);
	}
	peer_pretend_old_kernel(false);
}

#define test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_several_lines_at_once),
		test(test_a_line_in_pieces),
		test(test_long_line),
		test(test_a_client_that_does_not_read),
		test(test_one_list_for_all_waiting_clients),
		test(test_half_closed),
		test(test_the_end_of_a_connection_lets_go),
		test(test_too_many),
		test(test_a_descriptor_that_cannot_be_closed),
		test(test_users_who_fill_the_table),
		test(test_users_who_hold_tenants_by_most),
		test(test_users_who_hold_tenants_by_all),
		test(test_users_take_turns),
		test(test_a_command_of_a_process_that_has_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
