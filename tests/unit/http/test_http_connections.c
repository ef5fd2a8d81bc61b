/* The connections of the HTTP server: their limit, and which of them is closed when there are too many. */
#include "http_scene.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_limit_of_connections(void **state)
{
	struct scene *s = *state;
	int fd[SERVER_MAX_CONNECTIONS + 8];
	size_t count = sizeof(fd) / sizeof(fd[0]), length;
	bool is_closed;
	for (size_t i = 0; i < count; i++) {
		fd[i] = connect_client(s);
		send_text(fd[i], "GET /none HTTP/1.1\r\n");
		run_loop(s, 1);
	}
	run_loop(s, 20);
	assert_int_equal(server_connections(s->server), SERVER_MAX_CONNECTIONS);
	/* As one connection closes, the next is accepted. */
	for (size_t i = 0; i < count; i++) {
		/* With "close", receive() does not wait for silence: all of this must take less than SERVER_DEADLINE_NS. */
		send_text(fd[i], "Connection: close\r\n" HOST);
		char *text = receive(s, fd[i], &length, &is_closed);
		if (!strstr(text, " 404 "))
			fail_msg("%zu: '%s'", i, text);
		free(text);
		close(fd[i]);
		run_loop(s, 2);
	}
	assert_int_equal(server_connections(s->server), 0);
	assert_int_equal(s->requests, count);
}

/* Connections that wait do not keep the loop busy. */
static void test_waiting_connections_cost_no_cpu(void **state)
{
	struct scene *s = *state;
	int fd = connect_client(s), slow = connect_client(s), small = 4096;
	unsigned steps = 0;
	setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	send_text(fd, "GET /none HT");
	send_text(slow, "GET /page HTTP/1.1\r\n" HOST); /* and reads nothing of the answer */
	run_loop(s, 100);
	assert_int_equal(server_connections(s->server), 2);
	uint64_t end_ns = clock_now_ns() + 500 * NSEC_PER_MSEC;
	for (; clock_now_ns() < end_ns; steps++)
		loop_step(s->loop, 100);
	/* Five waits of 100 ms, and two checks for connections past their deadline. */
	assert_in_range(steps, 1, 20);
	close(fd);
	close(slow);
	run_loop(s, 20);
	assert_int_equal(server_connections(s->server), 0);
}

/* If all connections are taken, the one that is idle longest is closed for a new client. */
static void test_idle_connection_is_closed_for_new_client(void **state)
{
	struct scene *s = *state;
	int fd[5];
	size_t length;
	bool is_closed;
	for (unsigned i = 0; i < 4; i++) {
		fd[i] = connect_client(s);
		send_text(fd[i], "GET /none HTTP/1.1\r\n" HOST);
		run_loop(s, 20);
	}
	assert_int_equal(server_connections(s->server), 4);
	fd[4] = connect_client(s);
	send_text(fd[4], "GET /none HTTP/1.1\r\n" HOST);
	uint64_t end_ns = clock_now_ns() + 20 * NSEC_PER_SEC;
	while (s->requests < 5 && clock_now_ns() < end_ns)
		run_loop(s, 10);
	assert_int_equal(s->requests, 5);
	char *text = receive(s, fd[0], &length, &is_closed);
	assert_true(is_closed); /* the longest idle */
	free(text);
	for (unsigned i = 0; i < 5; i++)
		close(fd[i]);
	run_loop(s, 20);
	assert_int_equal(server_connections(s->server), 0);
}

/* Connects from this address of the loopback, and returns the socket. */
static int connect_from(const struct scene *s, const char *address)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(getsockname(s->listen_fd, (struct sockaddr *)&to, &length), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, length), 0);
	return fd;
}

/* The address with the most silent or half-sent connections loses them to clients of other addresses, again and again. */
static void test_silent_connections_are_closed_for_others(void **state)
{
	struct scene *s = *state;
	enum { SILENT = 12 };
	int silent[SILENT];
	size_t length;
	bool is_closed;
	for (unsigned i = 0; i < SILENT; i++) {
		silent[i] = connect_from(s, "127.0.0.2");
		if (i % 2)
			send_text(silent[i], "GET /none HTTP/1.1\r\n");
	}
	for (unsigned i = 0; i < 3; i++) {
		int fd = connect_from(s, "127.0.0.3");
		send_text(fd, "GET /none HTTP/1.1\r\n" HOST);
		uint64_t end_ns = clock_now_ns() + 60 * NSEC_PER_SEC;
		while (s->requests <= i && clock_now_ns() < end_ns)
			run_loop(s, 10);
		assert_int_equal(s->requests, i + 1);
		char *text = receive(s, fd, &length, &is_closed);
		assert_non_null(strstr(text, " 404 "));
		free(text);
		close(fd);
	}
	for (unsigned i = 0; i < SILENT; i++)
		close(silent[i]);
}

/* The only connection of an address is not closed for many connections of another address. */
static void test_only_connection_of_an_address_is_kept(void **state)
{
	struct scene *s = *state;
	int many[8];
	size_t length;
	bool is_closed;
	int lone = connect_from(s, "127.0.0.3");
	send_text(lone, "GET /none HTTP/1.1\r\n");
	for (unsigned i = 0; i < 8; i++)
		many[i] = connect_from(s, "127.0.0.2");
	/* By then it is the oldest connection, and its request is late. */
	uint64_t end_ns = clock_now_ns() + 5 * NSEC_PER_SEC / 2;
	while (clock_now_ns() < end_ns)
		run_loop(s, 10);
	send_text(lone, HOST);
	char *text = receive(s, lone, &length, &is_closed);
	assert_non_null(strstr(text, " 404 "));
	free(text);
	close(lone);
	for (unsigned i = 0; i < 8; i++)
		close(many[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_limit_of_connections, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_waiting_connections_cost_no_cpu, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_idle_connection_is_closed_for_new_client,
						scene_setup_bodies, scene_teardown),
		cmocka_unit_test_setup_teardown(test_silent_connections_are_closed_for_others,
						scene_setup_bodies, scene_teardown),
		cmocka_unit_test_setup_teardown(test_only_connection_of_an_address_is_kept,
						scene_setup_bodies, scene_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
