/* The HTTP server: answers, bodies, headers, and requests that are refused. */
#include "http_scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_answers(void **state)
{
	struct scene *s = *state;
	assert_answer(s, "GET /none HTTP/1.1\r\n" HOST, "HTTP/1.1 404 ", false);
	assert_answer(s, "GET /none HTTP/1.1\r\n" HOST, "\r\n\r\nnone\n", false);
	assert_answer(s, "GET /none HTTP/1.1\r\nConnection: close\r\n" HOST, "404", true);
	assert_answer(s, "GET /none HTTP/1.0\r\n\r\n", " 404 ", true);
	assert_answer(s, "DELETE /none HTTP/1.1\r\n" HOST, "\r\nAllow: GET\r\n", true);
	assert_string_equal(s->authorization, "-");
	assert_answer(s, "GET /none HTTP/1.1\r\nauthorization: Bearer x\r\n" HOST, "404", false);
	assert_string_equal(s->authorization, "Bearer x");
}

static void test_large_text_is_complete(void **state)
{
	struct scene *s = *state;
	int fd = connect_client(s);
	size_t length;
	bool is_closed;
	for (unsigned i = 0; i < 2; i++) {
		send_text(fd, "GET /page HTTP/1.1\r\n" HOST);
		char *text = receive(s, fd, &length, &is_closed);
		const char *body = strstr(text, "\r\n\r\n");
		assert_non_null(body);
		assert_non_null(strstr(text, "Content-Type: text/x\r\n"));
		assert_int_equal(length - (size_t)(body + 4 - text), PAGE_BYTES);
		assert_false(is_closed);
		free(text);
	}
	send_text(fd, "HEAD /page HTTP/1.1\r\n" HOST);
	char *text = receive(s, fd, &length, &is_closed);
	assert_non_null(strstr(text, "Content-Length: 3000000\r\n"));
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	free(text);
	close(fd);
}

static void test_bodies_are_refused_by_default(void **state)
{
	struct scene *s = *state;
	/* A GET with a body does not reach the handler. The body of another request is not read. */
	assert_answer(s, "GET /page HTTP/1.1\r\nContent-Length: 3\r\n" HOST "abc", "", true);
	assert_int_equal(s->requests, 0);
	assert_answer(s, "POST /page2 HTTP/1.1\r\nContent-Length: 1000000\r\n" HOST "abc", " 405 ",
		      true);
	assert_int_equal(s->requests, 1);
}

static void test_long_request_lines_and_headers_are_refused(void **state)
{
	struct scene *s = *state;
	size_t size = 40000;
	char *request = malloc(size);
	memset(request, 'a', size);
	memcpy(request, "GET /", 5);
	strcpy(request + size - 30, " HTTP/1.1\r\n" HOST);
	assert_answer(s, request, "HTTP/1.1 414 ", true);
	memset(request, 'a', size);
	memcpy(request, "GET / HTTP/1.1\r\nX: ", 19);
	strcpy(request + size - 30, "\r\n" HOST);
	assert_answer(s, request, "HTTP/1.1 431 ", true);
	free(request);
	assert_int_equal(s->requests, 0);
}

static void test_invalid_requests_are_refused(void **state)
{
	struct scene *s = *state;
	int fd;
	size_t length;
	bool is_closed;
	static const char *const invalid[] = { "\x16\x03\x01\x02\x01\r\n\r\n", "GET\r\n\r\n",
					       "GET / HTTP/9.9\r\n\r\n" };
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		fd = connect_client(s);
		send_text(fd, invalid[i]);
		char *text = receive(s, fd, &length, &is_closed);
		if (strstr(text, " 200 ") || !is_closed)
			fail_msg("%zu: closed %d: '%s'", i, is_closed, text);
		free(text);
		close(fd);
	}
}

static char *post(struct scene *s, const char *path, size_t size, bool *ret_closed)
{
	char head[160];
	char *body = malloc(size + 1);
	size_t length, sent = 0;
	int fd = connect_client(s);
	memset(body, 'b', size);
	body[size] = '\0';
	snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nContent-Length: %zu\r\n" HOST, path, size);
	send_text(fd, head);
	while (sent < size) {
		ssize_t n = send(fd, body + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			sent += (size_t)n;
		else if (errno != EAGAIN)
			break;
		run_loop(s, 1);
	}
	char *text = receive(s, fd, &length, ret_closed);
	assert_int_equal(sent, size);
	free(body);
	close(fd);
	run_loop(s, 5);
	return text;
}

static void test_bodies_up_to_their_limit(void **state)
{
	struct scene *s = *state;
	static const struct {
		size_t size;
		const char *status;
		size_t received; /* by the handler */
	} rows[] = {
		{ 1, " 200 ", 1 },
		{ 16384, " 200 ", 16384 },
		{ BODY_MAX, " 200 ", BODY_MAX },
		{ BODY_MAX + 1, " 413 ", 0 },
		{ 20 * BODY_MAX, " 413 ", 0 },
		{ BODY_MAX, " 200 ", BODY_MAX },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool is_closed;
		s->body_size = 0;
		char *text = post(s, "/echo", rows[i].size, &is_closed);
		if (!strstr(text, rows[i].status) || s->body_size != rows[i].received)
			fail_msg("%zu bytes: %zu received: %.200s", rows[i].size, s->body_size,
				 text);
		if (rows[i].received) {
			assert_non_null(strstr(text, "Content-Type: application/json\r\n"));
			assert_int_equal(strlen(strstr(text, "\r\n\r\n") + 4), rows[i].size);
		}
		free(text);
	}
	assert_int_equal(server_connections(s->server), 0);
}

/* Two requests on one connection are each answered later. Other connections are served meanwhile. */
static void test_later_answers(void **state)
{
	struct scene *s = *state;
	size_t length;
	bool is_closed;
	int fd = connect_client(s);
	for (unsigned i = 0; i < 2; i++) {
		s->waiting_count = 0;
		send_text(fd, "POST /later HTTP/1.1\r\nContent-Length: 3\r\n" HOST "abc");
		run_loop(s, 50);
		assert_int_equal(s->waiting_count, 1);
		assert_answer_meanwhile(s, "GET /at-once HTTP/1.1\r\n" HOST, "\r\n\r\nat once\n");
		server_call_answer(s->waiting[0],
				   &(struct server_answer){ .status = 201, .line = "late\n" });
		char *text = receive(s, fd, &length, &is_closed);
		if (!strstr(text, " 201 ") || !strstr(text, "\r\n\r\nlate\n") || is_closed)
			fail_msg("closed %d: %s", is_closed, text);
		free(text);
	}
	close(fd);
	run_loop(s, 20);
	assert_int_equal(server_connections(s->server), 0);
}

/* A call exists until it is answered, even if its client has disconnected. The server may stop before an answer. */
static void test_client_disconnects_before_answer(void **state)
{
	struct scene *s = *state;
	int fd[2];
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = connect_client(s);
		send_text(fd[i], "POST /later HTTP/1.1\r\nContent-Length: 1\r\n" HOST "a");
		run_loop(s, 20);
	}
	assert_int_equal(s->waiting_count, 2);
	close(fd[0]);
	run_loop(s, 50);
	server_call_answer(s->waiting[0], &(struct server_answer){ .status = 200, .line = "\n" });
	run_loop(s, 50);
	assert_int_equal(server_connections(s->server), 1);
	close(fd[1]);
}

static void test_configured_headers_are_in_every_answer(void **state)
{
	struct scene *s = *state;
	static const char wanted[] = "\r\nX-One: 1\r\nX-Two: 2\r\n";
	assert_answer(s, "GET /none HTTP/1.1\r\n" HOST, wanted, false);
	assert_answer(s, "DELETE /none HTTP/1.1\r\n" HOST, wanted, true);
	assert_answer(s, "HEAD /page HTTP/1.1\r\n" HOST, wanted, false);
	assert_answer_meanwhile(s, "GET /stream HTTP/1.1\r\n" HOST, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, scene_setup, scene_teardown),
		cmocka_unit_test_setup_teardown(test_large_text_is_complete, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_bodies_are_refused_by_default, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_long_request_lines_and_headers_are_refused,
						scene_setup, scene_teardown),
		cmocka_unit_test_setup_teardown(test_invalid_requests_are_refused, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_bodies_up_to_their_limit, scene_setup_bodies,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_later_answers, scene_setup_bodies,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_client_disconnects_before_answer,
						scene_setup_bodies, scene_teardown),
		cmocka_unit_test_setup_teardown(test_configured_headers_are_in_every_answer,
						scene_setup_headers, scene_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
