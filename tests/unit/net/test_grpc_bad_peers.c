/* The gRPC server with peers that send nothing, too much or invalid data; others are served meanwhile. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grpc_peer.h"
#include "../skip_unless_root.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* Waits until the server closes the connection, and closes fd. */
static void wait_for_end(int fd)
{
	uint8_t chunk[4096];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;
	do {
		assert_int_equal(poll(&p, 1, (int)(PATIENCE_NS / MS)), 1);
		n = recv(fd, chunk, sizeof(chunk), 0);
	} while (n > 0);
	close(fd);
}

static void test_silent_peer(void **state)
{
	wait_for_end(connect_peer());
	int fd = connect_peer();
	assert_int_equal(send(fd, PREFACE, 10, 0), 10);
	wait_for_end(fd);
}

/* Anyone may open the socket here, but only root and the server's own user are served. */
static void test_peer_of_another_user(void **state)
{
	int status;
	skip_unless_root();
	assert_int_equal(chmod(server_path, 0666), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		char c;
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		strcpy(address.sun_path, server_path);
		if (setresuid(65534, 65534, 65534) < 0 ||
		    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
			_exit(2);
		/* The server sends no byte, where it sends SETTINGS to others. */
		_exit(recv(fd, &c, 1, 0) == 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_echo(10);
}

static void test_request_that_never_ends(void **state)
{
	struct peer *p = peer_new(false);
	struct body b = { .data = "\0\0\0\1\0abc", .size = 8, .is_endless = true };
	nghttp2_nv headers[ALL_HEADERS];
	fill_headers(headers, "/test.Test/Echo");
	struct stream *s = peer_call(p, 0, headers, ALL_HEADERS, &b);
	PEER_UNTIL(p, s->is_closed);
	assert_string_equal(s->grpc_status, "4");
	peer_free(p);
}

static void test_peer_without_http2(void **state)
{
	static const char *const texts[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
					     "\x16\x03\x01\x02", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = connect_peer();
		assert_true(send(fd, texts[i], strlen(texts[i]), 0) > 0);
		wait_for_end(fd);
	}
	check_echo(10);
}

/* Frames that are cheap to send and each need an answer, from a peer that reads no answers. */
static void test_floods_of_frames(void **state)
{
	static const char ping[] = "\0\0\x08\x06\0\0\0\0\0whatever";
	static const char settings[] = "\0\0\0\x04\0\0\0\0\0";
	static const char reset[] = "\0\0\x04\x03\0\0\0\0\1\0\0\0\x08";
	const struct {
		const char *frame;
		size_t size;
	} kinds[] = { { ping, sizeof(ping) - 1 },
		      { settings, sizeof(settings) - 1 },
		      { reset, sizeof(reset) - 1 } };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd = connect_peer();
		ssize_t n = send(fd, PREFACE, strlen(PREFACE), 0);
		n = send(fd, settings, sizeof(settings) - 1, 0);
		for (unsigned k = 0; k < 200000 && n > 0; k++)
			n = send(fd, kinds[i].frame, kinds[i].size, MSG_NOSIGNAL | MSG_DONTWAIT);
		/* The server closes the connection or stops reading from it. Other peers are served meanwhile. */
		assert_true(n < 0);
		check_echo(100);
		close(fd);
	}
}

/* If there are too many connections, those without a call are closed, and no others. */
static void test_many_connections(void **state)
{
	int idle[LIMIT_CONNECTIONS];
	struct peer *p[LIMIT_CONNECTIONS];
	struct body b[LIMIT_CONNECTIONS] = { 0 };
	for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++)
		idle[i] = connect_peer();
	for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++) {
		p[i] = peer_new(false);
		struct stream *s = peer_watch(p[i], 0, &b[i], NULL);
		PEER_UNTIL(p[i], s->messages);
	}
	wait_for_end(connect_peer());
	for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++)
		wait_for_end(idle[i]);
	peer_free(p[0]);
	wait_for_count(&ended_watch_count, 1);
	check_echo(10);
	for (unsigned i = 1; i < LIMIT_CONNECTIONS; i++)
		peer_free(p[i]);
}

/* Eight calls at the same time on one connection: each is answered. */
static void test_many_calls(void **state)
{
	for (unsigned turn = 0; turn < 40; turn++) {
		struct peer *p = peer_new(false);
		struct body b[8] = { 0 };
		nghttp2_nv headers[ALL_HEADERS];
		fill_headers(headers, "/test.Test/Echo");
		for (unsigned i = 0; i < 8; i++)
			peer_call(p, i, headers, ALL_HEADERS, &b[i]);
		for (unsigned i = 0; i < 8; i++) {
			PEER_UNTIL(p, p->stream[i].is_closed);
			assert_string_equal(p->stream[i].grpc_status, "0");
		}
		peer_free(p);
	}
}

/* Valid calls with some bytes changed or cut off. Whatever their result, later calls are served. */
static void test_damaged_frames(void **state)
{
	unsigned seed = 20261122;
	for (unsigned turn = 0; turn < 1500; turn++) {
		uint8_t wire[1024];
		size_t size = 0;
		const uint8_t *data;
		ssize_t n;
		struct peer *p = peer_new(false);
		struct body b[2] = { 0 };
		nghttp2_nv headers[ALL_HEADERS];
		fill_headers(headers, turn % 2 ? "/test.Test/Watch" : "/test.Test/Echo");
		peer_call(p, 0, headers, ALL_HEADERS, &b[0]);
		peer_call(p, 1, headers, ALL_HEADERS, &b[1]);
		while ((n = nghttp2_session_mem_send(p->session, &data)) > 0) {
			assert_true(size + (size_t)n <= sizeof(wire));
			memcpy(wire + size, data, (size_t)n);
			size += (size_t)n;
		}
		for (unsigned k = rand_r(&seed) % 4; k < 4; k++)
			wire[24 + (size_t)rand_r(&seed) % (size - 24)] = (uint8_t)rand_r(&seed);
		size_t cut = rand_r(&seed) % 4 ? size : (size_t)rand_r(&seed) % size;
		n = send(p->fd, wire, cut, MSG_NOSIGNAL);
		if (turn % 100 == 0)
			check_echo(10);
		peer_free(p);
	}
	check_echo(10);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, server_setup, server_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_silent_peer),
		TEST(test_peer_of_another_user),
		TEST(test_request_that_never_ends),
		TEST(test_peer_without_http2),
		TEST(test_floods_of_frames),
		TEST(test_many_connections),
		TEST(test_many_calls),
		TEST(test_damaged_frames),
	};
	return cmocka_run_group_tests_name("grpc server, bad peers", tests, NULL, NULL);
}
