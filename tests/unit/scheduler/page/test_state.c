/* What the cluster's page tells of a model: nodes, pods, why these wait, and what is otherwise than it was. */
#include <errno.h>

#include "../cluster.h"
#include "base/clock.h"
#include "scheduler/extender/extender.h"
#include "scheduler/explain/explain.h"
#include "scheduler/page/history.h"
#include "scheduler/page/state.h"
#include "scheduler/page/wait_summary.h"
#include "verbs.h"

#define MEMORY(mib) GPU ",\"nvidia.com/gpumem\":\"" mib "\""
#define SECOND UINT64_C(1000000000)
#define ANY ((1U << VIEW_NODE_STATES) - 1)
#define ANY_POD ((1U << VIEW_POD_STATES) - 1)

static const struct view all = { .node_states = ANY, .pod_states = ANY_POD };

/* A reader of a model that has a clock of its own. */
struct reader {
	struct model *model;
	struct reasons *reasons;
	struct sent_state sent;
	uint64_t now_ns;
	json_t *news; /* the last */
};

static struct reader reader_of(struct model *m)
{
	return (struct reader){ .model = m, .reasons = reasons_new(), .now_ns = 1000 * SECOND };
}

static void reader_end(struct reader *r)
{
	json_decref(r->news);
	reasons_free(r->reasons);
	model_free(r->model);
}

/* The next event's members. */
static json_t *news(struct reader *r, const struct view *view)
{
	struct aggregate aggregate;
	struct json_text t = { 0 };
	assert_int_equal(aggregate_make(r->model, &aggregate), 0);
	const struct page_cluster c = { r->model, &aggregate,       r->reasons, true,
					true,     "http://{node}/", r->now_ns };
	json_text_open(&t, NULL, '{');
	bool is_news = page_cluster_write(&c, view, &r->sent, &t);
	json_text_close(&t, '}');
	char *text = json_text_end(&t);
	json_error_t why;
	json_decref(r->news);
	r->news = json_loads(text, 0, &why);
	if (!r->news)
		fail_msg("%s: %s", why.text, text);
	assert_int_equal(is_news, json_object_size(r->news) > 0);
	free(text);
	aggregate_free(&aggregate);
	return r->news;
}

/* All that a view shows, to one who has been told nothing. */
static json_t *afresh(struct reader *r, const struct view *view)
{
	r->sent = (struct sent_state){ 0 };
	return news(r, view);
}

static void assert_at(const json_t *object, const char *path, const char *wanted)
{
	char copy[128], *rest = copy;
	const json_t *at = object;
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *part; at && (part = strsep(&rest, "."));)
		at = json_is_array(at) ? json_array_get(at, (size_t)atoi(part))
				       : json_object_get(at, part);
	char *text = at ? json_dumps(at, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(10))
			: strdup("nothing");
	if (strcmp(text, wanted) != 0)
		fail_msg("%s: %s, and not %s", path, text, wanted);
	free(text);
}

static void fill(struct model *m, const char *pod, const char *node, const char *shares)
{
	json_t *object = pod_object(pod, GPU);
	allocate(object, node, shares, "success", true);
	give_pod(m, object);
}

static json_t *with_space(json_t *pod, const char *pod_namespace)
{
	json_object_set_new(json_object_get(pod, "metadata"), "namespace",
			    json_string(pod_namespace));
	return pod;
}

static struct model *three_nodes(void)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("b", 2, 8192, 100));
	give_node(m, node_object("a", 2, 8192, 100));
	give_node(m, node_object("c", 1, 16384, 100));
	fill(m, "p", "a", "a-0,NVIDIA,4096,50:;");
	fill(m, "q", "a", "a-1,NVIDIA,8192,0:;");
	fill(m, "r", "c", "c-0,NVIDIA,16384,100:;");
	return m;
}

/* ---- nodes ---- */

static void test_nodes(void **state)
{
	struct reader r = reader_of(three_nodes());
	json_t *told = afresh(&r, &all);
	assert_at(told, "version", "1");
	assert_at(told, "nodes.keys", "[\"a\",\"b\",\"c\"]");
	assert_at(told, "nodes.rows.0.promised_bytes", "12884901888");
	assert_at(told, "nodes.rows.0.promised_cores_pct", "50");
	assert_at(told, "nodes.rows.0.shares", "2");
	assert_at(told, "nodes.rows.0.state", "\"used\"");
	assert_at(told, "nodes.rows.1.state", "\"free\"");
	assert_at(told, "nodes.rows.2.state", "\"full\"");
	assert_at(told, "cluster.nodes", "3");
	assert_at(told, "cluster.cards", "5");
	assert_at(told, "cluster.pods", "3");
	assert_at(told, "open", "null");
	struct view view = all;
	view.node_states = 1U << VIEW_FREE | 1U << VIEW_FULL;
	assert_at(afresh(&r, &view), "nodes.keys", "[\"b\",\"c\"]");
	strcpy(view.node, "b");
	assert_at(afresh(&r, &view), "nodes.keys", "[\"b\"]");
	view = all;
	view.order = VIEW_BY_MEMORY;
	assert_at(afresh(&r, &view), "nodes.keys", "[\"c\",\"a\",\"b\"]");
	view.order = VIEW_BY_SHARES;
	assert_at(afresh(&r, &view), "nodes.keys", "[\"a\",\"c\",\"b\"]");
	view.nodes_from = 2;
	assert_at(afresh(&r, &view), "nodes.keys", "[\"b\"]");
	assert_at(r.news, "nodes.seen", "3");
	reader_end(&r);
}

/* What a node says of its cards may be wrong, and cards may be away. */
static void test_nodes_that_are_not_well(void **state)
{
	struct model *m = model_of_nothing();
	struct error err = { 0 };
	json_t *liar = node_saying("liar",
				   "[{\"id\":\"x\",\"count\":1},{\"id\":\"x\",\"count\":1}]", NULL);
	assert_int_equal(model_update_node(m, liar, &err), -EINVAL);
	json_decref(liar);
	give_node(m, node_saying("sick",
				 "[{\"id\":\"s-0\",\"count\":10,\"devmem\":8192,\"devcore\":100,"
				 "\"type\":\"T\","
				 "\"numa\":0,\"health\":false}]",
				 NULL));
	give_node(m, node_saying("none", NULL, NULL));
	struct reader r = reader_of(m);
	json_t *told = afresh(&r, &all);
	assert_at(told, "nodes.keys", "[\"liar\",\"sick\"]");
	assert_at(told, "nodes.rows.0.state", "\"aside\"");
	assert_at(told, "nodes.rows.1.state", "\"unhealthy\"");
	assert_at(told, "nodes.rows.1.cards_unhealthy", "1");
	assert_at(told, "cluster.nodes", "1");
	assert_at(told, "cluster.nodes_aside", "1");
	assert_at(told, "cluster.nodes_without_cards", "1");
	if (!json_string_length(json_object_get(
		    json_array_get(json_object_get(json_object_get(told, "nodes"), "rows"), 0),
		    "why")))
		fail_msg("the one that is set aside says nothing");
	reader_end(&r);
}

/* ---- pods ---- */

static void test_pods_by_state_and_namespace(void **state)
{
	struct model *m = three_nodes();
	give_pod(m, pod_object("w", MEMORY("9000")));
	give_pod(m, with_space(pod_object("x", MEMORY("9000")), "team-x"));
	give_pod(m, pod_object("broken", MEMORY("-1")));
	struct reader r = reader_of(m);
	json_t *told = afresh(&r, &all);
	assert_at(told, "pods.keys",
		  "[\"uid-broken\",\"uid-w\",\"uid-x\",\"uid-p\",\"uid-q\",\"uid-r\"]");
	assert_at(told, "pods.rows.1.asks", "[{\"cards\":1,\"cores_pct\":0,\"memory_mib\":9000}]");
	assert_at(told, "pods.rows.1.node", "null");
	assert_at(told, "pods.rows.1.why", "null");
	assert_at(told, "pods.rows.3.node", "\"a\"");
	assert_at(told, "pods.rows.3.memory_mib", "4096");
	assert_at(told, "pods.rows.3.cores_pct", "50");
	struct view view = all;
	view.pod_states = 1U << VIEW_WAITING;
	strcpy(view.pod_namespace, "am-");
	assert_at(afresh(&r, &view), "pods.keys", "[\"uid-x\"]");
	assert_at(r.news, "nodes", "{\"seen\":0,\"from\":0,\"keys\":[],\"rows\":[]}");
	view = all;
	strcpy(view.node, "c");
	/* Those that are on no node may come to be on this one. */
	assert_at(afresh(&r, &view), "pods.keys", "[\"uid-broken\",\"uid-w\",\"uid-x\",\"uid-r\"]");
	reader_end(&r);
}

static void look_for_reasons(struct reader *r)
{
	struct token_bucket token_bucket = { 0 };
	reasons_refresh(r->reasons, r->model, &token_bucket, 3, r->now_ns);
}

/* As `allot explain` has it, and again when the cluster is another. */
static void test_why_it_waits(void **state)
{
	struct model *m = three_nodes();
	give_pod(m, pod_object("w", MEMORY("5000")));
	give_node(m, node_object("b", 2, 4096, 100));
	struct reader r = reader_of(m);
	struct view view = all;
	view.pod_states = 1U << VIEW_WAITING;
	assert_at(afresh(&r, &view), "pods.rows.0.why", "null");
	look_for_reasons(&r);
	json_t *told = news(&r, &view);
	assert_at(told, "pods.rows.0.why.says", "\"none of 3 nodes has the requested GPUs free\"");
	assert_at(told, "pods.rows.0.why.groups.0",
		  "{\"nodes\":2,\"node\":\"a\",\"why\":\"2/2 "
		  "CardInsufficientMemory\",\"reasons\":[\"CardInsufficientMemory\"]}");
	assert_at(told, "pods.rows.0.why.more_nodes", "0");
	assert_at(told, "pods.rows.0.why.nearest.0",
		  "{\"node\":\"a\",\"cards\":1,\"memory_mib\":904,\"cores_pct\":0}");
	assert_at(told, "cluster", "nothing");
	/* Nothing has changed: it is not looked at again, however late it is. */
	r.now_ns += 5 * SECOND;
	assert_int_equal(json_object_size(news(&r, &view)), 0);
	look_for_reasons(&r);
	assert_int_equal(json_object_size(news(&r, &view)), 0);
	/* There is room, but it has just been looked at. */
	give_node(m, node_object("d", 1, 8192, 100));
	r.now_ns += 3 * SECOND;
	news(&r, &view);
	look_for_reasons(&r);
	assert_at(
		news(&r, &view), "pods.rows.0.why.says",
		"\"1 of 4 nodes have enough free GPUs, but the pod is not placed yet: other resources may be missing there, or kube-scheduler has not tried again\"");
	reader_end(&r);
}

static void test_reasons_have_an_allowance(void **state)
{
	struct model *m = three_nodes();
	struct token_bucket token_bucket = { .per_second = 100 };
	struct view view = all;
	char name[16];
	view.pod_states = 1U << VIEW_WAITING;
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		give_pod(m, pod_object(name, MEMORY("9000")));
	}
	struct reader r = reader_of(m);
	afresh(&r, &view);
	/* The smallest costs what a hundred nodes do: one a second, and each in its turn. */
	for (int i = 0; i < 5; i++) {
		unsigned known = 0;
		reasons_refresh(r.reasons, m, &token_bucket, 3, r.now_ns);
		json_t *pods = json_object_get(json_object_get(afresh(&r, &view), "pods"), "rows");
		for (size_t k = 0; k < json_array_size(pods); k++)
			known += json_is_object(json_object_get(json_array_get(pods, k), "why"));
		/* What was saved up lets one more in at first. */
		assert_in_range(known, i + 1, i + 2);
		r.now_ns += SECOND;
	}
	reader_end(&r);
}

/* Of many nodes that are not alike the largest groups are named, others are counted. */
static void test_groups_of_nodes(void **state)
{
	json_t *nodes = json_array();
	struct json_text t = { 0 };
	for (int i = 0; i < 500; i++)
		json_array_append_new(
			nodes, json_pack("{s:o,s:s,s:o,s:{s:i},s:{s:i,s:i,s:i,s:i}}", "node",
					 json_sprintf("n-%03d", i), "verdict", "full", "why",
					 json_sprintf("%d/8 X", i % 100 < 90 ? i % 3 : i % 100),
					 "reasons", "X", 1, "lacks", "permille", 1000 - i, "cards",
					 1, "memory_mib", i, "cores_pct", 0));
	json_t *explanation = json_pack("{s:o}", "nodes", nodes);
	wait_summary_write(explanation, &t);
	char *text = json_text_end(&t);
	json_t *why = json_loads(text, 0, NULL);
	assert_at(why, "says", "\"none of 500 nodes has the requested GPUs free\"");
	assert_at(why, "groups.0.nodes", "150");
	assert_int_equal(json_array_size(json_object_get(why, "groups")), WHY_GROUPS);
	assert_at(why, "more_nodes", "45");
	assert_at(why, "nearest.0.node", "\"n-499\"");
	assert_int_equal(json_array_size(json_object_get(why, "nearest")), WHY_NEAREST);
	json_decref(why);
	free(text);
	json_decref(explanation);
}

/* ---- one node ---- */

static void test_the_node_that_is_open(void **state)
{
	struct reader r = reader_of(three_nodes());
	struct view view = all;
	strcpy(view.open, "a");
	json_t *told = afresh(&r, &view);
	assert_at(told, "open.node", "\"a\"");
	assert_at(told, "open.url", "\"http://a/\"");
	assert_at(told, "open.devices.1.promised_bytes", "8589934592");
	assert_at(told, "open.devices.0.slots_used", "1");
	assert_at(told, "open.pods.0.pod", "\"p\"");
	assert_at(told, "open.pods.0.shares",
		  "[{\"container\":0,\"index\":0,\"card\":\"a-0\",\"memory_mib\":4096,\"cores_"
		  "pct\":50}]");
	fill(r.model, "s", "a", "a-0,NVIDIA,1024,10:;");
	told = news(&r, &view);
	assert_at(told, "open.pods_seen", "3");
	assert_at(told, "nodes.keys", "[\"a\",\"b\",\"c\"]");
	assert_int_equal(json_array_size(json_object_get(json_object_get(told, "nodes"), "rows")),
			 1);
	model_remove_node(r.model, "a");
	assert_at(news(&r, &view), "open", "null");
	reader_end(&r);
}

/* ---- changes ---- */

static void test_the_model_tells_of_changes(void **state)
{
	struct model *m = three_nodes();
	uint64_t before = m->generation;
	json_t *pod = pod_object("w", MEMORY("1000"));
	struct error err = { 0 };
	/* Looking is none. */
	json_t *explanation;
	give_pod(m, pod_object("w", MEMORY("1000")));
	assert_true(m->generation > before);
	before = m->generation;
	const struct explain_query ask = { "ns", "w", NULL };
	assert_int_equal(explain_pod(m, &ask, &explanation, &err), 0);
	json_decref(explanation);
	json_t *args = filter_args(pod, "a,b,c"), *answer = verbs_filter(m, args);
	json_decref(answer);
	json_decref(args);
	before = m->generation;
	/* A node that says the same as before, as each heartbeat has it. */
	give_node(m, node_object("b", 2, 8192, 100));
	assert_int_equal(m->generation, before);
	give_node(m, node_object("b", 3, 8192, 100));
	assert_true(m->generation > before);
	before = m->generation;
	struct decision d;
	args = bind_args("w", "b");
	assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
	decision_free(&d);
	json_decref(args);
	assert_true(m->generation > before);
	before = m->generation;
	model_release(m, "uid-w");
	assert_true(m->generation > before);
	before = m->generation;
	model_remove_node(m, "c");
	assert_true(m->generation > before);
	model_free(m);
}

/* ---- history ---- */

static void test_the_last_ten_minutes(void **state)
{
	struct history history = { 0 };
	struct aggregate aggregate = { .sum = { .memory_bytes = 1000, .cores_mpct = 1000 } };
	struct json_text t = { 0 };
	for (unsigned second = 1; second <= 1000; second++) {
		aggregate.sum.promised_bytes = second;
		aggregate.waiting = second;
		history_add(&history, &aggregate, second * SECOND);
	}
	json_text_open(&t, NULL, '{');
	history_write(&history, 1001 * SECOND, &t);
	json_text_close(&t, '}');
	char *text = json_text_end(&t);
	json_t *told = json_loads(text, 0, NULL);
	assert_at(told, "every_s", "5");
	assert_int_equal(json_array_size(json_object_get(told, "ages_s")), HISTORY_SAMPLES);
	assert_at(told, "ages_s.119", "5");
	assert_at(told, "memory_pct.119", "99.6");
	assert_at(told, "pods_waiting.119", "996");
	assert_at(told, "pods_waiting.0", "401");
	json_decref(told);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_nodes_that_are_not_well),
		cmocka_unit_test(test_pods_by_state_and_namespace),
		cmocka_unit_test(test_why_it_waits),
		cmocka_unit_test(test_reasons_have_an_allowance),
		cmocka_unit_test(test_groups_of_nodes),
		cmocka_unit_test(test_the_node_that_is_open),
		cmocka_unit_test(test_the_model_tells_of_changes),
		cmocka_unit_test(test_the_last_ten_minutes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
