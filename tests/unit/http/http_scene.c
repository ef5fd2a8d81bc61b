#include "http_scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/address.h"

static void handle(void *data, const struct server_request *request, struct server_answer *ret)
{
	struct scene *s = data;
	s->requests++;
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

static int scene_setup_with(void **state, struct server_config terms)
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

int scene_setup(void **state)
{
	return scene_setup_with(state, (struct server_config){ 0 });
}

int scene_setup_bodies(void **state)
{
	return scene_setup_with(state, (struct server_config){
					       .body_max = BODY_MAX,
					       .connections_max = 4,
					       .idle_ns = 3600 * NSEC_PER_SEC,
				       });
}

int scene_setup_headers(void **state)
{
	return scene_setup_with(state,
				(struct server_config){ .headers = headers, .header_count = 2 });
}

int scene_teardown(void **state)
{
	struct scene *s = *state;
	server_text_free(s->server, s->page);
	server_stop(s->server);
	loop_free(s->loop);
	free(s);
	return 0;
}

void run_loop(struct scene *s, unsigned ms)
{
	uint64_t end_ns = clock_now_ns() + ms * NSEC_PER_MSEC;
	do
		loop_step(s->loop, 1);
	while (clock_now_ns() < end_ns);
}

int connect_client(struct scene *s)
{
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	getsockname(s->listen_fd, (struct sockaddr *)&to, &length);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, length), 0);
	return fd;
}

void send_text(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

char *receive(struct scene *s, int fd, size_t *ret_length, bool *ret_closed)
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
			run_loop(s, 1);
			quiet++;
		}
	}
	text[used] = '\0';
	*ret_length = used;
	return text;
}

void assert_answer(struct scene *s, const char *request, const char *expected, bool closes)
{
	int fd = connect_client(s);
	size_t length;
	bool is_closed;
	send_text(fd, request);
	char *text = receive(s, fd, &length, &is_closed);
	if (!strstr(text, expected) || is_closed != closes)
		fail_msg("%s: closed %d: %.300s", request, is_closed, text);
	free(text);
	close(fd);
	run_loop(s, 5);
	assert_int_equal(server_connections(s->server), 0);
}

void assert_answer_meanwhile(struct scene *s, const char *request, const char *expected)
{
	int fd = connect_client(s);
	size_t length;
	bool is_closed;
	send_text(fd, request);
	char *text = receive(s, fd, &length, &is_closed);
	if (!strstr(text, expected))
		fail_msg("%s: %.300s", request, text);
	free(text);
	close(fd);
	run_loop(s, 5);
}
