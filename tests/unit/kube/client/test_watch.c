/* A watch that its owner stops in a handler calls no further handler. The test is the client and the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kube/client/watch.h"
#include "../../fake_kube.h"

#define PATH "/api/v1/pods"

/* One letter for each handler that was called: 'b'egin, 'o'bject, 'g'one, 's'ynced, 't'rouble, 'w'ell again. */
static char called[32];
static char stop_in; /* the handler that stops the watch */
static struct kube_watch *watch;

static void note(char handler)
{
	called[strlen(called)] = handler;
	if (handler == stop_in)
		watch = kube_watch_stop(watch);
}

static void begin(void *data)
{
	note('b');
}

static void object(void *data, json_t *object)
{
	note('o');
}

static void gone(void *data, json_t *object)
{
	note('g');
}

static void synced(void *data)
{
	note('s');
}

static void trouble(void *data, const struct error *err)
{
	note(err ? 't' : 'w');
}

static void ring(void)
{
	struct alarm *alarm = ringing;
	assert_non_null(alarm);
	ringing = NULL;
	alarm->handler(alarm->data);
}

/* Makes a watch whose first list fails and whose second has two objects, until it is stopped. */
static void expect_handlers(char stop, const char *handlers)
{
	static const struct watch_handlers on = { begin, object, gone, synced, trouble };
	json_t *list = json_pack("{s:{s:s}, s:[{},{}]}", "metadata", "resourceVersion", "7",
				 "items");
	memset(called, 0, sizeof(called));
	stop_in = stop;
	watch = kube_watch_start(NULL, PATH, "", &on, NULL);
	assert_non_null(watch);
	ring();
	expect_call("GET", PATH "?limit=200");
	answer_call(500, NULL);
	if (watch) {
		ring();
		answer_call(200, list);
	}
	assert_string_equal(called, handlers);
	if (watch) {
		ring();
		assert_non_null(strstr(call.path, "resourceVersion=7"));
	}
	watch = kube_watch_stop(watch);
	assert_null(call.done);
	assert_null(ringing);
	json_decref(list);
}

static void test_stops_in_a_handler(void **state)
{
	expect_handlers(0, "tboows");
	expect_handlers('t', "t");
	expect_handlers('b', "tb");
	expect_handlers('o', "tbo");
	expect_handlers('w', "tboow");
	expect_handlers('s', "tboows");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_stops_in_a_handler) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
