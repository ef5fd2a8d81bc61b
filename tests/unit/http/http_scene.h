/* The HTTP server by itself, over the loopback: client and server take turns in this one thread. */
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
	unsigned asked;
	char authorization[64];         /* of the last request; "-": none */
	struct server_call *waiting[4]; /* requests for /later */
	unsigned waiting_count;
	size_t body_size; /* of the last */
	struct server_call *stream[2];
	unsigned streams_ended;
};

int setup(void **state);
int setup_bodies(void **state);
int setup_headers(void **state);
int teardown(void **state);

void turn(struct scene *s, unsigned ms);
int connect_client(struct scene *s);
void say(int fd, const char *text);
/* Everything until the server closes, or until nothing has come for 100 ms. To be freed. */
char *hear(struct scene *s, int fd, size_t *ret_length, bool *ret_closed);
void assert_answer(struct scene *s, const char *request, const char *expected, bool closes);
/* The same while another has its connection. */
void assert_answer_beside(struct scene *s, const char *request, const char *expected);
