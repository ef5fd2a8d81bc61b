/* The page's stream when a client is slow: the test is the server and the state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/export/page/events.h"
#include "daemon/export/page/state.h"
#include "daemon/gpu/census.h"

/* ---- in place of the server: a client's call is its number ---- */

struct server_part {
	char bytes[400];
};

static struct client {
	bool is_slow;
	char text[400]; /* of the latest event */
} client[2];

static struct client *client_of(const struct server_call *call)
{
	return &client[(uintptr_t)call - 1];
}

struct server_part *server_part_new(size_t size)
{
	assert_true(size < sizeof(struct server_part));
	return calloc(1, sizeof(struct server_part));
}

char *server_part_bytes(struct server_part *part)
{
	return part->bytes;
}

struct server_part *server_part_free(struct server_part *part)
{
	free(part);
	return NULL;
}

bool server_stream_is_ready(const struct server_call *call)
{
	return !client_of(call)->is_slow;
}

int server_stream_send(struct server_call *call, struct server_part *part)
{
	struct client *c = client_of(call);
	if (c->is_slow)
		return -EAGAIN;
	strcpy(c->text, part->bytes);
	return 0;
}

/* ---- in place of the daemon: one lease span ends before each state ---- */

static uint64_t ended;

void page_state_write(struct node *node, struct page_sent *told, struct state_text *s)
{
	ended++;
	json_text_open(&s->json, NULL, '{');
	state_text_open_tenants(s);
	state_text_close_tenants(s);
	json_text_open(&s->json, "spans", '[');
	while (told->spans[0] < ended)
		json_text_whole(&s->json, NULL, (int64_t)++told->spans[0]);
	json_text_close(&s->json, ']');
	json_text_close(&s->json, '}');
}

void page_state_sample(struct node *node, struct history *history)
{
}

void census_request(struct census *census)
{
}

static void turn_until(struct loop *loop, uint64_t states)
{
	while (ended < states)
		assert_true(loop_step(loop, 1000) >= 0);
}

/* ---- tests ---- */

static void test_a_slow_client_loses_no_spans(void **state)
{
	static struct node node;
	struct server_call *first = (struct server_call *)1, *second = (struct server_call *)2;
	struct error err = { 0 };
	struct events *e;
	assert_int_equal(loop_new(&node.loop, &err), 0);
	assert_int_equal(events_new(&node, &e, &err), 0);
	assert_int_equal(events_add(e, first), 0);
	assert_int_equal(events_add(e, second), 0);
	turn_until(node.loop, 2);
	assert_non_null(strstr(client[0].text, "\"spans\":[2]"));
	client[1].is_slow = true;
	turn_until(node.loop, 4);
	/* The client that is not slow gets each once meanwhile. */
	assert_non_null(strstr(client[0].text, "\"spans\":[4]"));
	client[1].is_slow = false;
	turn_until(node.loop, 5);
	assert_non_null(strstr(client[1].text, "3,4,5]"));
	turn_until(node.loop, 6);
	assert_non_null(strstr(client[1].text, "\"spans\":[6]"));
	events_free(e);
	loop_free(node.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_slow_client_loses_no_spans),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
