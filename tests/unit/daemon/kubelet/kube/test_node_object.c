/* When and with which contents the Node object of this node is patched. The test plays the client and the watch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/kubelet/kube/node_object.h"
#include "kube/client/watch.h"
#include "../../../fake_kube.h"

#define PATH "/api/v1/nodes/node"

static struct watch_handlers on;
static struct node_object *object;

struct kube_watch *kube_watch_start(struct kube_client *client, const char *collection,
				    const char *selector, const struct watch_handlers *handlers,
				    void *data)
{
	on = *handlers;
	return (struct kube_watch *)&on;
}

struct kube_watch *kube_watch_stop(struct kube_watch *watch)
{
	return NULL;
}

static void want(const char *cards)
{
	struct desired_metadata desired = { .cards = strdup(cards) };
	node_object_set_desired(object, &desired);
}

/* An event of the watch. */
static void see(const char *version)
{
	json_t *node = json_pack("{s:{s:s,s:s}}", "metadata", "uid", "u", "resourceVersion",
				 version);
	on.object(object, node);
	json_decref(node);
}

static void begin(void)
{
	object = node_object_start(NULL, "node", NULL, NULL);
	assert_non_null(object);
	want("one");
	on.list_begun(object);
	see("1");
	on.synced(object);
	expect_call("PATCH", PATH);
}

/* Neither events nor other contents: a server that refuses is asked again when the wait is over. */
static void test_a_refusal_is_waited_out(void **state)
{
	begin();
	answer_call(500, NULL);
	assert_non_null(ringing);
	see("2");
	assert_null(call.done);
	want("two");
	assert_null(call.done);
	ringing->handler(ringing->data);
	expect_call("PATCH", PATH);
	/* Not for the wait that is over: the next refusal has its own. */
	ringing = NULL;
	answer_call(500, NULL);
	assert_non_null(ringing);
	node_object_stop(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_refusal_is_waited_out),
	};
	return cmocka_run_group_tests_name("node_object", tests, NULL, NULL);
}
