/* Bindings of many nodes: turns, and calls whose answers come in any order. The API server is the test's own. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <cmocka.h>

#include "kube/client/kube_event.h"
#include "kube/hami/annotations.h"
#include "scheduler/bind/bind.h"

#define SHARES "GPU-a,NVIDIA,3000,30:;"
#define NODES 48
#define PODS_PER_NODE 3

/* ---- the API server: a call stays open until the test answers it ---- */

struct kube_call {
	TAILQ_ENTRY(kube_call) link;
	kube_done done;
	void *data;
	char method[8], path[256];
};

struct kube_client {
	struct reactor *reactor;
	TAILQ_HEAD(, kube_call) calls;
	unsigned open, most; /* calls; the most at once so far */
	char lock[NODES][128];
	unsigned failing; /* one of so many calls is refused; 0: none */
};

struct reactor *kube_client_reactor(struct kube_client *client)
{
	return client->reactor;
}

static struct kube_client *api;

struct kube_call *kube_call_start(struct kube_client *client, const struct kube_request *request,
				  kube_line line, kube_done done, void *data)
{
	struct kube_call *call = calloc(1, sizeof(*call)), *other;
	/* A binding makes one call after the other. */
	TAILQ_FOREACH(other, &client->calls, link)
		assert_ptr_not_equal(other->data, data);
	*call = (struct kube_call){ .done = done, .data = data };
	snprintf(call->method, sizeof(call->method), "%s", request->method);
	snprintf(call->path, sizeof(call->path), "%s", request->path);
	TAILQ_INSERT_TAIL(&client->calls, call, link);
	client->open++;
	client->most = client->open > client->most ? client->open : client->most;
	unsigned node;
	if (!strcmp(request->method, "PATCH") &&
	    sscanf(request->path, "/api/v1/nodes/n%u", &node) == 1) {
		json_t *body = json_loads(request->body, 0, NULL);
		const char *lock = json_string_value(json_object_get(
			json_object_get(json_object_get(body, "metadata"), "annotations"),
			KUBE_NODE_LOCK));
		snprintf(client->lock[node], sizeof(client->lock[node]), "%s", lock ? lock : "");
		json_decref(body);
	}
	return call;
}

struct kube_call *kube_call_drop(struct kube_call *call)
{
	if (!call)
		return NULL;
	TAILQ_REMOVE(&api->calls, call, link);
	api->open--;
	free(call);
	return NULL;
}

void event_send_as(const char *component, struct kube_client *client,
		   const struct event_about *about, bool is_warning, const char *reason,
		   const char *message, const char *host)
{
}

static json_t *node_object(unsigned node)
{
	char name[16];
	snprintf(name, sizeof(name), "n%u", node);
	json_t *annotations = json_pack("{s:s}", KUBE_NODE_REGISTER, "[{\"id\": \"GPU-a\"}]");
	if (*api->lock[node])
		json_object_set_new(annotations, KUBE_NODE_LOCK, json_string(api->lock[node]));
	return json_pack("{s:{s:s,s:s,s:o}}", "metadata", "name", name, "resourceVersion", "1",
			 "annotations", annotations);
}

static json_t *pod_object(const char *name)
{
	return json_pack("{s:{s:s,s:s,s:s,s:s},s:{s:[{s:s}]},s:{s:s}}", "metadata", "name", name,
			 "namespace", "default", "uid", name, "resourceVersion", "1", "spec",
			 "containers", "name", "main", "status", "phase", "Pending");
}

/* That one ends well, or is refused once. */
static void answer(struct kube_call *call)
{
	struct kube_answer answer = { .status = 200 };
	unsigned node;
	char pod[32];
	if (sscanf(call->path, "/api/v1/nodes/n%u", &node) == 1)
		answer.object = node_object(node);
	else if (sscanf(call->path, "/api/v1/namespaces/default/pods/%31[^/]", pod) == 1)
		answer.object = pod_object(pod);
	assert_non_null(answer.object);
	if (api->failing && (unsigned)rand() % api->failing == 0) {
		answer.status = 409;
		error_set(&answer.err, EAGAIN, "conflict");
	}
	TAILQ_REMOVE(&api->calls, call, link);
	api->open--;
	call->done(call->data, &answer);
	free(call);
	json_decref(answer.object);
}

static struct kube_call *call_of(const char *end)
{
	struct kube_call *call;
	TAILQ_FOREACH(call, &api->calls, link) {
		size_t length = strlen(call->path), size = strlen(end);
		if (length >= size && !strcmp(call->path + length - size, end))
			return call;
	}
	return NULL;
}

/* ---- the scene ---- */

struct scene {
	struct kube_client client;
	struct binder *binder;
	unsigned ended[NODES * PODS_PER_NODE];
	unsigned bound, failed;
};

struct asked {
	struct scene *scene;
	unsigned pod;
};

static void pod_ended(void *data, const struct error *err)
{
	struct asked *asked = data;
	asked->scene->ended[asked->pod]++;
	asked->scene->bound += !err->code;
	asked->scene->failed += err->code != 0;
	free(asked);
}

static void start(struct scene *s, unsigned pod, unsigned node)
{
	char name[16], at[16];
	struct error err;
	struct asked *asked = malloc(sizeof(*asked));
	snprintf(name, sizeof(name), "p%u", pod);
	snprintf(at, sizeof(at), "n%u", node);
	struct decision d = {
		.pod_namespace = (char *)"default", .pod = name, .uid = name, .node = at
	};
	assert_int_equal(shares_parse(SHARES, &d.shares, &err), 0);
	*asked = (struct asked){ s, pod };
	assert_int_equal(bind_start(s->binder, &d, pod_ended, asked), 0);
	shares_free(&d.shares);
}

/* All alarms that are due now. */
static void ring(struct scene *s)
{
	struct pollfd fd = { .fd = reactor_fd(s->client.reactor), .events = POLLIN };
	while (poll(&fd, 1, 1) > 0)
		reactor_process(s->client.reactor);
}

static void see_node(struct scene *s, unsigned node)
{
	json_t *object = node_object(node);
	binder_node_changed(s->binder, object);
	json_decref(object);
}

static void begin(struct scene *s, unsigned at_once, uint64_t limit_ns)
{
	memset(s, 0, sizeof(*s));
	api = &s->client;
	TAILQ_INIT(&api->calls);
	assert_int_equal(reactor_new(&api->reactor), 0);
	const struct bind_terms terms = { .client = api, .at_once = at_once, .limit_ns = limit_ns };
	assert_int_equal(binder_new(&terms, &s->binder), 0);
}

static void end(struct scene *s)
{
	binder_free(s->binder);
	assert_int_equal(api->open, 0);
	reactor_free(api->reactor);
}

/* Its calls, one after the other, end well. */
static void finish(struct scene *s, unsigned pod, unsigned node)
{
	char as_pod[16], as_node[16];
	snprintf(as_pod, sizeof(as_pod), "pods/p%u", pod);
	snprintf(as_node, sizeof(as_node), "nodes/n%u", node);
	unsigned bound = s->bound;
	while (s->bound == bound) {
		struct kube_call *call = call_of(as_pod);
		call = call ? call : call_of(as_node);
		call = call ? call : call_of("/binding");
		assert_non_null(call);
		answer(call);
	}
}

/* ---- tests ---- */

/*
 * A node waits for its lock, and for a turn. Its lock is released as a turn becomes free that another node was before it
 * for: whichever of both begins, no binding is begun twice, and no turn is lost.
 */
static void test_lock_released_while_in_line(void **state)
{
	struct scene s;
	struct bind_status status;
	begin(&s, 2, 0);
	snprintf(api->lock[3], sizeof(api->lock[3]), "2100-01-01T00:00:00Z,default,holder");
	start(&s, 3, 3);
	ring(&s);
	answer(call_of("pods/p3"));
	answer(call_of("nodes/n3"));
	answer(call_of("pods/holder"));
	assert_int_equal(api->open, 0);
	assert_true(bind_get_status(s.binder, "p3", &status));
	assert_string_equal(status.lock, api->lock[3]);
	/* Two nodes have the turns; n2 is in the line, and n3 behind it. */
	start(&s, 0, 0);
	start(&s, 1, 1);
	ring(&s);
	assert_int_equal(api->open, 2);
	start(&s, 2, 2);
	ring(&s);
	api->lock[3][0] = '\0';
	see_node(&s, 3);
	ring(&s);
	assert_int_equal(api->open, 2);
	see_node(&s, 3);
	finish(&s, 0, 0);
	ring(&s);
	finish(&s, 1, 1);
	ring(&s);
	assert_int_equal(api->open, 2);
	finish(&s, 2, 2);
	ring(&s);
	finish(&s, 3, 3);
	assert_int_equal(s.failed, 0);
	end(&s);
}

/* Whatever comes first, every pod is bound, once. */
static void test_many_nodes(void **state)
{
	struct scene s;
	begin(&s, 0, 0);
	srand(1);
	api->failing = 10;
	for (unsigned i = 0; i < NODES * PODS_PER_NODE; i++)
		start(&s, i, i % NODES);
	for (unsigned round = 0; s.bound + s.failed < NODES * PODS_PER_NODE; round++) {
		unsigned skip = api->open ? (unsigned)rand() % api->open : 0;
		struct kube_call *call = TAILQ_FIRST(&api->calls);
		while (skip--)
			call = TAILQ_NEXT(call, link);
		if (call)
			answer(call);
		/* The device plugin of some node lets its lock go, and the watch tells of it. */
		unsigned node = (unsigned)rand() % NODES;
		api->lock[node][0] = '\0';
		see_node(&s, node);
		ring(&s);
		assert_true(round < 1000000);
	}
	for (unsigned i = 0; i < NODES * PODS_PER_NODE; i++)
		assert_int_equal(s.ended[i], 1);
	assert_int_equal(s.failed, 0);
	assert_int_equal(api->most, BIND_AT_ONCE);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock_released_while_in_line),
		cmocka_unit_test(test_many_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
