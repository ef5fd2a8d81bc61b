/* The HTTP server by itself, over the loopback: client and server take turns in this one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "http/address.h"
#include "http/http_server.h"

#define PAGE_BYTES 3000000

struct scene {
	struct loop *loop;
	struct server *server;
	struct server_text *page;
	int listen_fd;
	unsigned asked;
	char authorization[64];         /* of the last request; "-": none */
	struct server_call *waiting[4]; /* requests for /later */
	unsigned waiting_count;
	size_t body_size; /* of the last */
	struct server_call *stream[2];
	unsigned streams_ended;
};

static void handle(void *data, const struct server_request *request, struct server_answer *ret)
{
	struct scene *s = data;
	s->asked++;
	snprintf(s->authorization, sizeof(s->authorization), "%s",
		 request->authorization ? request->authorization : "-");
	s->body_size = request->body_size;
	if (!strcmp(request->path, "/later")) {
		ret->is_later = true;
		s->waiting[s->waiting_count++] = request->call;
	} else if (!strcmp(request->path, "/at-once")) {
		server_call_answer(request->call,
				   &(struct server_answer){ .status = 200, .line = "at once\n" });
		ret->is_later = true;
	} else if (!strcmp(request->path, "/echo") && request->body)
		*ret = (struct server_answer){ .status = 200,
					       .own = strdup(request->body),
					       .type = "application/json" };
	else if (!strcmp(request->path, "/stream")) {
		s->stream[s->stream[0] ? 1 : 0] = request->call;
		*ret = (struct server_answer){ .status = 200, .is_stream = true, .type = "text/s" };
	} else if (!strcmp(request->path, "/page"))
		*ret = (struct server_answer){ .status = 200, .text = s->page };
	else if (!strcmp(request->method, "GET") || !strcmp(request->method, "HEAD"))
		*ret = (struct server_answer){ .status = 404, .line = "none\n" };
	else
		*ret = (struct server_answer){
			.status = 405, .line = "no\n", .header = "Allow", .header_value = "GET"
		};
}

static void stream_ended(void *data, struct server_call *call)
{
	struct scene *s = data;
	s->streams_ended++;
	for (unsigned i = 0; i < 2; i++)
		if (s->stream[i] == call)
			s->stream[i] = NULL;
}

static const struct server_header headers[] = { { "X-One", "1" }, { "X-Two", "2" } };

static int setup_with(void **state, struct server_config terms)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct address address;
	struct error err = { 0 };
	char *text = malloc(PAGE_BYTES);
	memset(text, 'x', PAGE_BYTES);
	terms.handler = handle;
	terms.stream_ended = stream_ended;
	terms.data = s;
	if (address_parse("127.0.0.1:0", &address, &err) < 0 ||
	    address_listen(&address, false, &s->listen_fd, &err) < 0 ||
	    loop_new(&s->loop, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	terms.loop = s->loop;
	terms.listen_fd = s->listen_fd;
	if (server_start(&terms, &s->server, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	s->page = server_text_new(s->server, text, PAGE_BYTES, "text/x");
	*state = s;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, (struct server_config){ 0 });
}

#define BODY_MAX 100000

static int setup_bodies(void **state)
{
	return setup_with(state, (struct server_config){
					 .body_max = BODY_MAX,
					 .connections_max = 4,
					 .idle_ns = 3600 * NSEC_PER_SEC,
				 });
}

static int setup_headers(void **state)
{
	return setup_with(state, (struct server_config){ .headers = headers, .header_count = 2 });
}

static int teardown(void **state)
{
	struct scene *s = *state;
	server_text_free(s->server, s->page);
	server_stop(s->server);
	loop_free(s->loop);
	free(s);
	return 0;
}

static void turn(struct scene *s, unsigned ms)
{
	uint64_t end_ns = clock_now_ns() + ms * NSEC_PER_MSEC;
	do
		loop_step(s->loop, 1);
	while (clock_now_ns() < end_ns);
}

static int connect_client(struct scene *s)
{
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	getsockname(s->listen_fd, (struct sockaddr *)&to, &length);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, length), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Everything until the server closes, or until nothing has come for 100 ms. To be freed. */
static char *hear(struct scene *s, int fd, size_t *ret_length, bool *ret_closed)
{
	size_t used = 0, size = 1 << 16, quiet = 0;
	char *text = malloc(size);
	*ret_closed = false;
	while (quiet < 100 && !*ret_closed) {
		ssize_t n = recv(fd, text + used, size - used - 1, MSG_DONTWAIT);
		if (n > 0) {
			used += (size_t)n;
			quiet = 0;
			if (size - used < 4096)
				text = realloc(text, size *= 2);
		} else if (n == 0 || errno != EAGAIN) {
			*ret_closed = true;
		} else {
			turn(s, 1);
			quiet++;
		}
	}
	text[used] = '\0';
	*ret_length = used;
	return text;
}

static void assert_answer(struct scene *s, const char *request, const char *expected, bool closes)
{
	int fd = connect_client(s);
	size_t length;
	bool is_closed;
	say(fd, request);
	char *text = hear(s, fd, &length, &is_closed);
	if (!strstr(text, expected) || is_closed != closes)
		fail_msg("%s: closed %d: %.300s", request, is_closed, text);
	free(text);
	close(fd);
	turn(s, 5);
	assert_int_equal(server_connections(s->server), 0);
}

/* The same while another has its connection. */
static void assert_answer_beside(struct scene *s, const char *request, const char *expected)
{
	int fd = connect_client(s);
	size_t length;
	bool is_closed;
	say(fd, request);
	char *text = hear(s, fd, &length, &is_closed);
	if (!strstr(text, expected))
		fail_msg("%s: %.300s", request, text);
	free(text);
	close(fd);
	turn(s, 5);
}

#define HOST "Host: x\r\n\r\n"

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

static void test_a_large_text_comes_whole(void **state)
{
	struct scene *s = *state;
	int fd = connect_client(s);
	size_t length;
	bool is_closed;
	for (unsigned i = 0; i < 2; i++) {
		say(fd, "GET /page HTTP/1.1\r\n" HOST);
		char *text = hear(s, fd, &length, &is_closed);
		const char *body = strstr(text, "\r\n\r\n");
		assert_non_null(body);
		assert_non_null(strstr(text, "Content-Type: text/x\r\n"));
		assert_int_equal(length - (size_t)(body + 4 - text), PAGE_BYTES);
		assert_false(is_closed);
		free(text);
	}
	say(fd, "HEAD /page HTTP/1.1\r\n" HOST);
	char *text = hear(s, fd, &length, &is_closed);
	assert_non_null(strstr(text, "Content-Length: 3000000\r\n"));
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	free(text);
	close(fd);
}

static void test_bodies_are_not_taken(void **state)
{
	struct scene *s = *state;
	/* That of a GET is nobody's; that of another is not read. */
	assert_answer(s, "GET /page HTTP/1.1\r\nContent-Length: 3\r\n" HOST "abc", "", true);
	assert_int_equal(s->asked, 0);
	assert_answer(s, "POST /page2 HTTP/1.1\r\nContent-Length: 1000000\r\n" HOST "abc", " 405 ",
		      true);
	assert_int_equal(s->asked, 1);
}

static void test_what_is_too_long_is_refused(void **state)
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
	assert_int_equal(s->asked, 0);
}

static void test_noise_is_refused(void **state)
{
	struct scene *s = *state;
	int fd;
	size_t length;
	bool is_closed;
	static const char *const noise[] = { "\x16\x03\x01\x02\x01\r\n\r\n", "GET\r\n\r\n",
					     "GET / HTTP/9.9\r\n\r\n" };
	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
		fd = connect_client(s);
		say(fd, noise[i]);
		char *text = hear(s, fd, &length, &is_closed);
		if (strstr(text, " 200 ") || !is_closed)
			fail_msg("%zu: closed %d: '%s'", i, is_closed, text);
		free(text);
		close(fd);
	}
}

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

static char *post(struct scene *s, const char *path, size_t size, bool *ret_closed)
{
	char head[160];
	char *body = malloc(size + 1);
	size_t length, sent = 0;
	int fd = connect_client(s);
	memset(body, 'b', size);
	body[size] = '\0';
	snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nContent-Length: %zu\r\n" HOST, path, size);
	say(fd, head);
	while (sent < size) {
		ssize_t n = send(fd, body + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			sent += (size_t)n;
		else if (errno != EAGAIN)
			break;
		turn(s, 1);
	}
	char *text = hear(s, fd, &length, ret_closed);
	assert_int_equal(sent, size);
	free(body);
	close(fd);
	turn(s, 5);
	return text;
}

static void test_bodies_up_to_their_limit(void **state)
{
	struct scene *s = *state;
	static const struct {
		size_t size;
		const char *status;
		size_t taken; /* by the handler */
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
		if (!strstr(text, rows[i].status) || s->body_size != rows[i].taken)
			fail_msg("%zu bytes: %zu taken: %.200s", rows[i].size, s->body_size, text);
		if (rows[i].taken) {
			assert_non_null(strstr(text, "Content-Type: application/json\r\n"));
			assert_int_equal(strlen(strstr(text, "\r\n\r\n") + 4), rows[i].size);
		}
		free(text);
	}
	assert_int_equal(server_connections(s->server), 0);
}

/* One after the other on one connection, each answered later; others are served meanwhile. */
static void test_answers_that_come_later(void **state)
{
	struct scene *s = *state;
	size_t length;
	bool is_closed;
	int fd = connect_client(s);
	for (unsigned i = 0; i < 2; i++) {
		s->waiting_count = 0;
		say(fd, "POST /later HTTP/1.1\r\nContent-Length: 3\r\n" HOST "abc");
		turn(s, 50);
		assert_int_equal(s->waiting_count, 1);
		assert_answer_beside(s, "GET /at-once HTTP/1.1\r\n" HOST, "\r\n\r\nat once\n");
		server_call_answer(s->waiting[0],
				   &(struct server_answer){ .status = 201, .line = "late\n" });
		char *text = hear(s, fd, &length, &is_closed);
		if (!strstr(text, " 201 ") || !strstr(text, "\r\n\r\nlate\n") || is_closed)
			fail_msg("closed %d: %s", is_closed, text);
		free(text);
	}
	close(fd);
	turn(s, 20);
	assert_int_equal(server_connections(s->server), 0);
}

/* The call is there until it is answered, whoever has gone meanwhile; and the server may end before. */
static void test_a_client_that_does_not_wait(void **state)
{
	struct scene *s = *state;
	int fd[2];
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = connect_client(s);
		say(fd[i], "POST /later HTTP/1.1\r\nContent-Length: 1\r\n" HOST "a");
		turn(s, 20);
	}
	assert_int_equal(s->waiting_count, 2);
	close(fd[0]);
	turn(s, 50);
	server_call_answer(s->waiting[0], &(struct server_answer){ .status = 200, .line = "\n" });
	turn(s, 50);
	assert_int_equal(server_connections(s->server), 1);
	close(fd[1]);
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

static void test_headers_of_every_answer(void **state)
{
	struct scene *s = *state;
	static const char wanted[] = "\r\nX-One: 1\r\nX-Two: 2\r\n";
	assert_answer(s, "GET /none HTTP/1.1\r\n" HOST, wanted, false);
	assert_answer(s, "DELETE /none HTTP/1.1\r\n" HOST, wanted, true);
	assert_answer(s, "HEAD /page HTTP/1.1\r\n" HOST, wanted, false);
	assert_answer_beside(s, "GET /stream HTTP/1.1\r\n" HOST, wanted);
}

/* ---- streams ---- */

static struct server_part *part_of(char letter, size_t size)
{
	struct server_part *part = server_part_new(size);
	assert_non_null(part);
	memset(server_part_bytes(part), letter, size);
	return part;
}

static int begin_stream(struct scene *s, unsigned number)
{
	int fd = connect_client(s);
	say(fd, "GET /stream HTTP/1.1\r\n" HOST);
	turn(s, 50);
	assert_non_null(s->stream[number]);
	return fd;
}

static size_t count_of(const char *text, char letter)
{
	size_t count = 0;
	for (; *text; text++)
		count += *text == letter;
	return count;
}

#define PART_BYTES ((size_t)200000) /* many times what the server keeps of an answer */

static void test_parts_come_whole_and_in_order(void **state)
{
	struct scene *s = *state;
	static const char letters[] = "QZW";
	int fd[2] = { begin_stream(s, 0), begin_stream(s, 1) };
	size_t length;
	bool is_closed;
	for (unsigned i = 0; letters[i]; i++) {
		struct server_part *part = part_of(letters[i], PART_BYTES);
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(server_stream_send(s->stream[k], part), 0);
		/* Nothing is kept for later. */
		assert_int_equal(server_stream_send(s->stream[0], part), -EAGAIN);
		server_part_free(part);
		for (unsigned k = 0; k < 2; k++) {
			char *text = hear(s, fd[k], &length, &is_closed);
			const char *body = i ? text : strstr(text, "\r\n\r\n");
			assert_int_equal(count_of(body, letters[i]), PART_BYTES);
			assert_false(is_closed);
			free(text);
		}
	}
	/* Who has gone is noticed at the next part. */
	close(fd[0]);
	turn(s, 20);
	for (unsigned i = 0; i < 100 && !s->streams_ended; i++) {
		struct server_part *part = part_of('x', PART_BYTES);
		if (s->stream[0])
			server_stream_send(s->stream[0], part);
		server_part_free(part);
		turn(s, 10);
	}
	assert_int_equal(s->streams_ended, 1);
	assert_null(s->stream[0]);
	assert_non_null(s->stream[1]);
	assert_int_equal(server_connections(s->server), 1);
	close(fd[1]);
}

/* A stream that has nothing to say costs nothing and lasts; the server may end in the midst of it. */
static void test_a_quiet_stream(void **state)
{
	struct scene *s = *state;
	int fd = begin_stream(s, 0);
	unsigned steps = 0;
	uint64_t end_ns = clock_now_ns() + SERVER_DEADLINE_NS + NSEC_PER_SEC;
	for (; clock_now_ns() < end_ns; steps++)
		loop_step(s->loop, 500);
	assert_in_range(steps, 1, 60); /* looks for those whose time is over */
	assert_int_equal(s->streams_ended, 0);
	struct server_part *part = part_of('y', PART_BYTES);
	assert_int_equal(server_stream_send(s->stream[0], part), 0);
	server_part_free(part);
	close(fd);
}

static void test_a_slow_reader_is_dropped(void **state)
{
	struct scene *s = *state;
	int slow = begin_stream(s, 0), fd = begin_stream(s, 1);
	uint64_t began_ns = clock_now_ns(), last_ns = began_ns;
	unsigned heard = 0;
	char scrap[65536];
	while (!s->streams_ended && clock_now_ns() - began_ns < 20 * NSEC_PER_SEC) {
		struct server_part *part = part_of('z', PART_BYTES);
		for (unsigned i = 0; i < 2; i++)
			if (s->stream[i] && !server_stream_send(s->stream[i], part))
				last_ns = i ? last_ns : clock_now_ns();
		server_part_free(part);
		turn(s, 2);
		for (ssize_t n; (n = recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT)) > 0;)
			heard += n > 0;
		turn(s, 20);
	}
	/* What it did not take in its time was one part, and the other stream went on. */
	assert_int_equal(s->streams_ended, 1);
	assert_null(s->stream[0]);
	assert_true(clock_now_ns() - last_ns >= SERVER_DEADLINE_NS);
	assert_true(heard > 10);
	assert_non_null(s->stream[1]);
	close(slow);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_large_text_comes_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bodies_are_not_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_too_long_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_noise_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_more_than_so_many_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting_costs_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bodies_up_to_their_limit, setup_bodies,
						teardown),
		cmocka_unit_test_setup_teardown(test_answers_that_come_later, setup_bodies, teardown),
		cmocka_unit_test_setup_teardown(test_a_client_that_does_not_wait, setup_bodies,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_idle_make_room, setup_bodies, teardown),
		cmocka_unit_test_setup_teardown(test_the_silent_make_room, setup_bodies, teardown),
		cmocka_unit_test_setup_teardown(test_a_lone_client_keeps_its_place, setup_bodies,
						teardown),
		cmocka_unit_test_setup_teardown(test_headers_of_every_answer, setup_headers,
						teardown),
		cmocka_unit_test_setup_teardown(test_parts_come_whole_and_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_quiet_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_slow_reader_is_dropped, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
