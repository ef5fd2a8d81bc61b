/* A change that top requests while memory runs out: it fails, and the next change can be requested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/top/data/source.h"

#define WAIT_MS 10000

/* ---- in place of the daemon ---- */

static const struct daemon_target target;
static _Atomic unsigned requests;
static _Atomic bool is_short; /* of memory */

int sample_take(const struct daemon_target *of, struct client **client, bool is_whole,
		struct sample *ret, struct error *err)
{
	return error_set(err, ENOENT, "no daemon");
}

void sample_free(struct sample *sample)
{
}

int daemon_find(const struct daemon_target *of, struct client **ret, struct error *err)
{
	*ret = NULL;
	return 0;
}

int client_request(struct client *client, const char *op, json_t *body, json_t **ret_reply,
		   struct error *err)
{
	requests++;
	json_decref(body);
	return 0;
}

struct client *client_free(struct client *client)
{
	return NULL;
}

static void *take_memory(size_t size)
{
	return is_short ? NULL : malloc(size);
}

/* ---- tests ---- */

static int wait_for_outcome(struct source *source)
{
	for (;;) {
		struct pollfd p = { .fd = source_fd(source), .events = POLLIN };
		struct sample sample;
		struct source_outcome outcome;
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		source_take(source, &sample, &outcome);
		if (outcome.is_set)
			return outcome.error.code;
	}
}

static void test_without_memory_a_change_fails(void **state)
{
	struct source *source;
	struct error err = { 0 };
	json_set_alloc_funcs(take_memory, free);
	assert_int_equal(source_open(&target, NULL, 3600 * NSEC_PER_SEC, &source, &err), 0);
	json_t *body = json_pack("{s:s}", "name", "one");
	is_short = true;
	assert_int_equal(source_change(source, "pause", body, &err), 0);
	assert_int_equal(wait_for_outcome(source), ENOMEM);
	is_short = false;
	assert_int_equal(requests, 0);
	assert_int_equal(source_change(source, "pause", json_pack("{s:s}", "name", "one"), &err), 0);
	assert_int_equal(wait_for_outcome(source), 0);
	assert_int_equal(requests, 1);
	source_close(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_memory_a_change_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
