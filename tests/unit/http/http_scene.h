/* An HTTP server on the loopback, and clients for it. The test's only thread runs both in turn. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "http/http_server.h"

#define PAGE_BYTES 3000000
#define BODY_MAX 100000
#define HOST "Host: x\r\n\r\n"

struct scene {
	struct loop *loop;
	struct server *server;
	struct server_text *page;
	int listen_fd;
	unsigned requests;              /* that the handler got */
	char authorization[64];         /* of the last request; "-": it has none */
	struct server_call *waiting[4]; /* requests for /later */
	unsigned waiting_count;
	size_t body_size; /* of the last request */
	struct server_call *stream[2];
	unsigned streams_ended;
};

/* cmocka setup and teardown: *state is the scene. Also with bodies up to BODY_MAX and four connections, or with headers. */
int scene_setup(void **state);
int scene_setup_bodies(void **state);
int scene_setup_headers(void **state);
int scene_teardown(void **state);

/* Runs the server's loop for this long. */
void run_loop(struct scene *s, unsigned ms);
int connect_client(struct scene *s);
/* Sends text to the server; fails the test if the socket does not take all of it. */
void send_text(int fd, const char *text);
/* Receives until the server closes or nothing has come for 100 ms. The caller frees the text. */
char *receive(struct scene *s, int fd, size_t *ret_length, bool *ret_closed);
/* Fails the test unless the answer contains `expected`, and the server closes the connection if and only if `closes`. */
void assert_answer(struct scene *s, const char *request, const char *expected, bool closes);
/* Does the same while there are other connections, and does not check whether the server closes this one. */
void assert_answer_meanwhile(struct scene *s, const char *request, const char *expected);
