/* The HTTP server by itself, over the loopback: client and server take turns in this one thread. */
#include "http_scene.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_no_more_than_so_many_at_a_time(void **state)
{
	struct scene *s = *state;
	int fd[SERVER_MAX_CONNECTIONS + 8];
	size_t count = sizeof(fd) / sizeof(fd[0]), length;
	bool is_closed;
	for (size_t i = 0; i < count; i++) {
		fd[i] = connect_client(s);
		say(fd[i], "GET /none HTTP/1.1\r\n");
		turn(s, 1);
	}
	turn(s, 20);
	assert_int_equal(server_connections(s->server), SERVER_MAX_CONNECTIONS);
	/* As one goes, the next comes. */
	for (size_t i = 0; i < count; i++) {
		say(fd[i], HOST);
		char *text = hear(s, fd[i], &length, &is_closed);
		if (!strstr(text, " 404 "))
			fail_msg("%zu: '%s'", i, text);
		free(text);
		close(fd[i]);
		turn(s, 2);
	}
	assert_int_equal(server_connections(s->server), 0);
	assert_int_equal(s->asked, count);
}

/* Who has connected and waits does not keep the loop busy. */
static void test_waiting_costs_nothing(void **state)
{
	struct scene *s = *state;
	int fd = connect_client(s), slow = connect_client(s), small = 4096;
	unsigned steps = 0;
	setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	say(fd, "GET /none HT");
	say(slow, "GET /page HTTP/1.1\r\n" HOST); /* and reads nothing of it */
	turn(s, 100);
	assert_int_equal(server_connections(s->server), 2);
	uint64_t end_ns = clock_now_ns() + 500 * NSEC_PER_MSEC;
	for (; clock_now_ns() < end_ns; steps++)
		loop_step(s->loop, 100);
	/* Five of waiting, two of looking for those whose time is over. */
	assert_in_range(steps, 1, 20);
	close(fd);
	close(slow);
	turn(s, 20);
	assert_int_equal(server_connections(s->server), 0);
}

/* Whoever keeps its place by doing nothing loses it once somebody else wants it. */
static void test_the_idle_make_room(void **state)
{
	struct scene *s = *state;
	int fd[5];
	size_t length;
	bool is_closed;
	for (unsigned i = 0; i < 4; i++) {
		fd[i] = connect_client(s);
		say(fd[i], "GET /none HTTP/1.1\r\n" HOST);
		turn(s, 20);
	}
	assert_int_equal(server_connections(s->server), 4);
	fd[4] = connect_client(s);
	say(fd[4], "GET /none HTTP/1.1\r\n" HOST);
	uint64_t end_ns = clock_now_ns() + 20 * NSEC_PER_SEC;
	while (s->asked < 5 && clock_now_ns() < end_ns)
		turn(s, 10);
	assert_int_equal(s->asked, 5);
	char *text = hear(s, fd[0], &length, &is_closed);
	assert_true(is_closed); /* the longest idle */
	free(text);
	for (unsigned i = 0; i < 5; i++)
		close(fd[i]);
	turn(s, 20);
	assert_int_equal(server_connections(s->server), 0);
}

/* A client of that address of the loopback. */
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

/* The address with the most silent or half-sent connections loses places to other clients, again and again. */
static void test_the_silent_make_room(void **state)
{
	struct scene *s = *state;
	enum { SILENT = 12 };
	int silent[SILENT];
	size_t length;
	bool is_closed;
	for (unsigned i = 0; i < SILENT; i++) {
		silent[i] = connect_from(s, "127.0.0.2");
		if (i % 2)
			say(silent[i], "GET /none HTTP/1.1\r\n");
	}
	for (unsigned i = 0; i < 3; i++) {
		int fd = connect_from(s, "127.0.0.3");
		say(fd, "GET /none HTTP/1.1\r\n" HOST);
		uint64_t end_ns = clock_now_ns() + 60 * NSEC_PER_SEC;
		while (s->asked <= i && clock_now_ns() < end_ns)
			turn(s, 10);
		assert_int_equal(s->asked, i + 1);
		char *text = hear(s, fd, &length, &is_closed);
		assert_non_null(strstr(text, " 404 "));
		free(text);
		close(fd);
	}
	for (unsigned i = 0; i < SILENT; i++)
		close(silent[i]);
}

/* One connection is not given up for the many of another address. */
static void test_a_lone_client_keeps_its_place(void **state)
{
	struct scene *s = *state;
	int many[8];
	size_t length;
	bool is_closed;
	int lone = connect_from(s, "127.0.0.3");
	say(lone, "GET /none HTTP/1.1\r\n");
	for (unsigned i = 0; i < 8; i++)
		many[i] = connect_from(s, "127.0.0.2");
	/* It is the oldest by far then, and its request has taken long. */
	uint64_t end_ns = clock_now_ns() + 5 * NSEC_PER_SEC / 2;
	while (clock_now_ns() < end_ns)
		turn(s, 10);
	say(lone, HOST);
	char *text = hear(s, lone, &length, &is_closed);
	assert_non_null(strstr(text, " 404 "));
	free(text);
	close(lone);
	for (unsigned i = 0; i < 8; i++)
		close(many[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_more_than_so_many_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting_costs_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_idle_make_room, setup_bodies, teardown),
		cmocka_unit_test_setup_teardown(test_the_silent_make_room, setup_bodies, teardown),
		cmocka_unit_test_setup_teardown(test_a_lone_client_keeps_its_place, setup_bodies,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
