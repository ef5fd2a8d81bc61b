/* What allot explain says of what it is told. */
#include "../test.h"

#include <sys/resource.h>

#include "cli/explain/api.h"
#include "cli/explain/explain_pod.h"
#include "cli/explain/explain_text.h"

static json_t *parse(const char *json)
{
	json_error_t why;
	json_t *object = json_loads(json, 0, &why);
	if (!object)
		fail_msg("%s: %s", why.text, json);
	return object;
}

static char *write_text(const json_t *explanation)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	explain_text_write(explanation, out);
	fclose(out);
	return text;
}

static void assert_text(const char *json, const char *wanted)
{
	json_t *explanation = parse(json);
	char *text = write_text(explanation);
	assert_string_equal(text, wanted);
	free(text);
	json_decref(explanation);
}

#define POD "\"namespace\":\"ns\",\"pod\":\"p\",\"uid\":\"u\""
#define ASK(memory) \
	"{\"container\":0,\"kind\":\"app\",\"cards\":1,\"cores_pct\":30,\"memory_mib\":" memory "}"
#define CLUSTER(nodes, aside) \
	"\"cluster\":{\"nodes\":" nodes ",\"nodes_without_cards\":0,\"nodes_aside\":" aside \
	",\"cards\":8,\"most_cards_of_a_node\":4,\"cards_cordoned\":0,\"cards_not_healthy\":0," \
	"\"types\":[{\"type\":\"NVIDIA-H200\",\"cards\":8,\"memory_mib\":8192}]}"
#define FULL(name, free, short, permille) \
	"{\"node\":\"" name "\",\"verdict\":\"full\",\"why\":\"4/4 CardInsufficientMemory\"," \
	"\"container\":0,\"beside_others\":false,\"reasons\":{\"CardInsufficientMemory\":4}," \
	"\"most_free_mib\":" free ",\"most_free_cores_pct\":50,\"lacks\":{\"cards\":1," \
	"\"memory_mib\":" short ",\"cores_pct\":0,\"permille\":" permille "},\"cards\":4}"

/* Nodes that are alike are one line, with the most that is free on any; the smallest gap comes first. */
static void test_groups(void **state)
{
	assert_text(
		"{" POD ",\"state\":\"waiting\",\"asks\":[" ASK("8192") "]," CLUSTER(
			"2", "0") ","
				  "\"containers\":[\"main\"],\"nodes\":[" FULL(
					  "a", "2048", "6144", "750") "," FULL("b", "3072", "5120",
									       "625") "]}",
		"ns/p waits: none of 2 nodes has the requested GPUs free\n  main requests 1 GPU with 8.0 GiB and 30 % of the time\n\nWhy not\n  2 nodes: 4/4 CardInsufficientMemory\n      CardInsufficientMemory: at most 3.0 GiB free on any of these GPUs, 8.0 GiB requested\n\nNearest\n  b: 1 GPU would need 5.0 GiB more free\n  a: 1 GPU would need 6.0 GiB more free\n\nPossible fixes\n  pods that run now must end: allot explain -n ns p --node NODE lists them\n");
}

/* What no card of the cluster can do is said with what there is. */
static void test_never(void **state)
{
	assert_text(
		"{" POD ",\"state\":\"waiting\",\"asks\":[" ASK("9000") "]," CLUSTER(
			"1", "1") ","
				  "\"nodes\":[{\"node\":\"a\",\"verdict\":\"unfit\",\"why\":\"4/4 "
				  "CardInsufficientMemory\",\"container\":0,\"reasons\":{"
				  "\"CardInsufficientMemory\":4},"
				  "\"most_free_mib\":8192,\"most_free_cores_pct\":100,\"cards\":4},"
				  "{\"node\":\"l\",\"verdict\":\"aside\",\"why\":\"hami.io/"
				  "node-nvidia-register: "
				  "broken\"}]}",
		"ns/p waits: none of 2 nodes has the requested GPUs free\n  container 0 requests 1 GPU with 8.8 GiB and 30 % of the time\n\nWhy not\n  a: 4/4 CardInsufficientMemory\n      CardInsufficientMemory: at most 8.0 GiB free on any of these GPUs, 8.8 GiB requested\n  l: hami.io/node-nvidia-register: broken\n\nPossible fixes\n  container 0 requests 8.8 GiB (9000 MiB) of a GPU: the largest here has 8.0 GiB (8192 MiB)\n  1 node is set aside, since the list of GPUs on the Node object is not valid\n");
	assert_text(
		"{" POD ",\"state\":\"waiting\",\"asks\":[{\"container\":0,\"kind\":\"init\","
		"\"cards\":5,\"cores_pct\":100,\"memory_pct\":100}],\"use_type\":[\"A100\",\"B\"]"
		"," CLUSTER("2",
			    "0") ",\"nodes\":[{\"node\":\"a\",\"verdict\":\"unfit\",\"why\":\"8/8 "
				 "CardTypeMismatch\",\"container\":0,\"reasons\":{"
				 "\"CardTypeMismatch\":8}}]}",
		"ns/p waits: none of 1 node has the requested GPUs free\n  container 0 (init) requests 5 GPUs with all of the memory, each alone\n  its GPUs are to be of type A100, B\n\nWhy not\n  a: 8/8 CardTypeMismatch\n      CardTypeMismatch: the GPU is of another type, or mode, than the pod asks for\n\nPossible fixes\n  container 0 requests 5 GPUs together: no node has more than 4\n  no GPU is of a type, or mode, that the pod asks for; there are NVIDIA-H200 (8)\n");
}

static void test_none_of_ours(void **state)
{
	assert_text(
		"{" POD ",\"state\":\"waiting\",\"asks\":[" ASK("1024") "]," CLUSTER(
			"2", "0") ","
				  "\"scheduled\":\"0/2 nodes are available: 2 Insufficient "
				  "cpu.\",\"nodes\":[{\"node\":"
				  "\"a\",\"verdict\":\"fits\",\"score\":7.5,\"cards\":4},{"
				  "\"node\":\"b\",\"verdict\":"
				  "\"fits\",\"score\":0.0,\"cards\":4}]}",
		"ns/p waits, though 2 of 2 nodes have enough free GPUs\n  container 0 requests 1 GPU with 1.0 GiB and 30 % of the time\n\nPossible fixes\n  kube-scheduler may have other reasons: kubectl -n ns describe pod p\n\nkube-scheduler says:\n  0/2 nodes are available: 2 Insufficient cpu.\n");
	assert_text(
		"{" POD ",\"state\":\"waiting\",\"asks\":[" ASK(
			"1024") "],\"cluster\":{\"nodes\":0,"
				"\"nodes_aside\":0,\"cards\":0,\"types\":[]},\"nodes\":[]}",
		"ns/p waits: no node reports GPUs\n  container 0 requests 1 GPU with 1.0 GiB and 30 % of the time\n\nPossible fixes\n  no node has the annotation hami.io/node-nvidia-register: is allotd, or another device plugin of that protocol, at work on the nodes with GPUs?\n");
	assert_text("{" POD
		    ",\"state\":\"waiting\",\"broken\":\"container 0: limits: nvidia.com/gpumem: "
		    "'-1': must be more\"}",
		    "ns/p waits: its request is not valid: container 0: limits: "
		    "nvidia.com/gpumem: "
		    "'-1': must be more\n");
	assert_text(
		"{" POD
		",\"state\":\"waiting\",\"gang\":\"gang train: only 3 of its 4 pods exist: none is placed before all exist\","
		"\"asks\":[]}",
		"ns/p waits: gang train: only 3 of its 4 pods exist: none is placed before all exist\n");
	assert_text("{" POD ",\"state\":\"waiting\",\"asks\":[]}",
		    "ns/p waits, but requests no GPU\n");
	assert_text("{" POD ",\"state\":\"ending\"}", "ns/p is being deleted\n");
}

#define SHARES \
	"\"on\":\"n\",\"shares\":[{\"container\":1,\"card\":\"GPU-a\",\"memory_mib\":3000," \
	"\"cores_pct\":0}],\"containers\":[\"early\",\"main\"]"

static void test_on_its_way(void **state)
{
	assert_text("{" POD ",\"state\":\"reserved\",\"held_for_s\":280," SHARES "}",
		    "ns/p waits: node n is chosen and its GPUs are reserved for 280 s; it is not "
		    "bound yet\n"
		    "  main will get on GPU-a: 2.9 GiB\n");
	assert_text(
		"{" POD ",\"state\":\"reserved\",\"held_for_s\":9,\"gang\":\"gang train: 1 of 4 "
		"pods are ready to be bound\"," SHARES "}",
		"ns/p waits: node n is chosen and its GPUs are reserved for 9 s; it is not bound yet; gang train: 1 of 4 pods are ready to be bound\n  main will get on GPU-a: 2.9 GiB\n");
	assert_text(
		"{" POD ",\"state\":\"reserved\"," SHARES
		",\"binding\":{\"node\":\"n\",\"pods_before\":2,"
		"\"given_up_in_s\":9,\"lock\":\"2026-11-20T10:00:00Z,ns,other\"}}",
		"ns/p waits: node n is chosen, and it is being bound; the node is still locked for pod ns/other; 2 pods of that node go before it\n  main will get on GPU-a: 2.9 GiB\n");
	assert_text("{" POD ",\"state\":\"bound\",\"bind_phase\":\"allocating\"," SHARES "}",
		    "ns/p is on node n, whose device plugin has not given it its GPUs yet\n"
		    "  main has on GPU-a: 2.9 GiB\n");
}

static void test_card_by_card(void **state)
{
	assert_text(
		"{" POD ",\"state\":\"waiting\",\"asks\":[" ASK("8192") "]," CLUSTER(
			"2", "0") ","
				  "\"nodes\":[{\"node\":\"a\",\"verdict\":\"full\",\"why\":\"1/1 "
				  "CardInsufficientMemory\","
				  "\"reasons\":{\"CardInsufficientMemory\":1},\"most_free_mib\":"
				  "3192,\"lacks\":{\"cards\":"
				  "1,\"memory_mib\":5000,\"cores_pct\":10,\"permille\":610},"
				  "\"card\":[{\"uuid\":\"GPU-a\","
				  "\"index\":0,\"type\":\"NVIDIA-H200\",\"memory_mib\":8192,\"free_"
				  "mib\":3192,"
				  "\"cores_pct\":100,\"free_cores_pct\":60,\"slots\":10,\"slots_"
				  "used\":1,\"reason\":"
				  "\"CardInsufficientMemory\",\"pods\":[{\"namespace\":\"ns\","
				  "\"pod\":\"x\","
				  "\"container\":0,\"memory_mib\":5000,\"cores_pct\":40}]}]}]}",
		"ns/p waits; node a does not have the requested GPUs free\n  container 0 requests 1 GPU with 8.0 GiB and 30 % of the time\n\nWhy not\n  a: 1/1 CardInsufficientMemory\n      CardInsufficientMemory: at most 3.1 GiB free on any of these GPUs, 8.0 GiB requested\n\nNode a\n  0 GPU-a NVIDIA-H200: 3.1 GiB of 8.0 GiB free, 60 of 100 % of its time, 1 of at most 10 containers; CardInsufficientMemory\n      ns/x container 0: 4.9 GiB, 40 %\n\nNearest\n  a: 1 GPU would need 4.9 GiB and 10 % of the time more free\n");
}

#define FILLER_CARD(more) \
	"{\"uuid\":\"GPU-a\",\"index\":0,\"type\":\"NVIDIA-H200\",\"memory_mib\":8192,\"free_" \
	"mib\":4096," \
	"\"cores_pct\":100,\"free_cores_pct\":20,\"slots\":10,\"slots_used\":2," more \
	",\"reason\":\"CardInsufficientCore\",\"pods\":[{\"namespace\":\"ns\",\"pod\":\"x\"," \
	"\"container\":0,\"memory_mib\":1024,\"cores_pct\":0,\"lent_pct\":40}]}"
#define FILLER_NODE(name, more) \
	"{\"node\":\"" name "\",\"verdict\":\"unfit\",\"why\":\"1/1 CardInsufficientCore\"," \
	"\"container\":0,\"reasons\":{\"CardInsufficientCore\":1},\"most_free_cores_pct\":" \
	"20," more "}"
#define FILLER_SAYS(nodes) \
	"{" POD ",\"state\":\"waiting\",\"placed_by\":\"use\",\"asks\":[" ASK( \
		"1024") "]," CLUSTER("3", "0") ",\"nodes\":[" nodes "]}"

/* One that takes what others leave is told what that is, and of whom. */
static void test_placed_by_use(void **state)
{
	assert_text(
		FILLER_SAYS(FILLER_NODE(
			"a", "\"card\":[" FILLER_CARD(
				     "\"use\":{\"promised_pct\":80,\"lent_pct\":40,\"measured_pct\":90,"
				     "\"peak_pct\":30,\"now_pct\":12,\"taken_pct\":80}") "]")),
		"ns/p waits; node a does not have the requested GPUs free\n  container 0 requests 1 GPU with 1.0 GiB and 30 % of the time, placed by use\n\nWhy not\n  a: 1/1 CardInsufficientCore\n      CardInsufficientCore: at most 20 % of the time free on any of these GPUs, 30 % requested\n\nNode a\n  0 GPU-a NVIDIA-H200: 4.0 GiB of 8.0 GiB free, 20 of 100 % of its time, 2 of at most 10 containers; CardInsufficientCore\n      judged by use: 80 % of its time is promised. Of that, 80 % is measured: 30 % used at the peak, 12 % now. 40 % is lent; so 80 % counts as taken\n      ns/x container 0: 1.0 GiB, 40 % at most, while others leave it unused\n");
	assert_text(
		FILLER_SAYS(FILLER_NODE(
			"a", "\"card\":[" FILLER_CARD("\"use_unknown\":\"nobody says it\"") "]")),
		"ns/p waits; node a does not have the requested GPUs free\n  container 0 requests 1 GPU with 1.0 GiB and 30 % of the time, placed by use\n\nWhy not\n  a: 1/1 CardInsufficientCore\n      CardInsufficientCore: at most 20 % of the time free on any of these GPUs, 30 % requested\n\nNode a\n  0 GPU-a NVIDIA-H200: 4.0 GiB of 8.0 GiB free, 20 of 100 % of its time, 2 of at most 10 containers; CardInsufficientCore\n      judged by what is promised, since its measured use is not known: nobody says it\n      ns/x container 0: 1.0 GiB, 40 % at most, while others leave it unused\n");
	/* Of many nodes, together. */
	assert_text(
		FILLER_SAYS(FILLER_NODE("a", "\"cards_shut\":2,\"open_in_s\":500") "," FILLER_NODE(
			"b", "\"cards_shut\":1,\"open_in_s\":90") "," FILLER_NODE("c",
										  "\"cards_of_"
										  "unknown_use\":"
										  "1,\"use_"
										  "unknown\":"
										  "\"nobody says "
										  "it\"")),
		"ns/p waits: none of 3 nodes has the requested GPUs free\n  container 0 requests 1 GPU with 1.0 GiB and 30 % of the time, placed by use\n\nWhy not\n  3 nodes: 1/1 CardInsufficientCore\n      CardInsufficientCore: at most 20 % of the time free on any of these GPUs, 30 % requested\n      3 GPUs are closed to pods placed by use, after evictions from them: the first opens in 90 s\n      1 GPU is judged by what is promised, since the measured use is not known: nobody says it\n");
}

/* 5,000 nodes, all but a few alike: the text stays short. */
static void test_many(void **state)
{
	json_t *e = parse("{" POD ",\"state\":\"waiting\",\"asks\":[" ASK(
		"8192") "]," CLUSTER("5000", "0") ",\"nodes\":[]}");
	for (int i = 0; i < 5000; i++) {
		json_t *node = parse(FULL("n", "2048", "6144", "750"));
		char text[64];
		snprintf(text, sizeof(text), "n%04d", i);
		json_object_set_new(node, "node", json_string(text));
		snprintf(text, sizeof(text), "%d/64 CardInsufficientMemory", i < 18 ? i : 64);
		json_object_set_new(node, "why", json_string(text));
		json_array_append_new(json_object_get(e, "nodes"), node);
	}
	char *text = write_text(e);
	assert_non_null(strstr(text, "none of 5,000 nodes"));
	assert_non_null(strstr(text, "\n  4,982 nodes: 64/64 CardInsufficientMemory\n"));
	assert_non_null(strstr(text, "\n  11 more nodes, for 11 other reasons: --json lists all\n"));
	assert_non_null(strstr(text, "\n  n0004: 1 GPU"));
	assert_null(strstr(text, "\n  n0005: 1 card"));
	free(text);
	json_decref(e);
}

static void test_quota(void **state)
{
	json_t *e = parse("{" POD ",\"state\":\"waiting\",\"asks\":[" ASK("1001") "]," CLUSTER(
		"1", "0") ","
			  "\"containers\":[\"main\"],\"quotas\":[{\"resource\":"
			  "\"nvidia.com/gpumem\",\"limit\":5000,\"used\":4000},{\"resource\":"
			  "\"nvidia.com/gpu\",\"limit\":3,\"used\":0}],\"nodes\":[{\"node\":\"a\","
			  "\"verdict\":\"unfit\",\"why\":\"4/4 ResourceQuotaNotFit\","
			  "\"container\":0,\"beside_others\":false,\"reasons\":"
			  "{\"ResourceQuotaNotFit\":4},\"cards\":4}]}");
	char *text = write_text(e);
	assert_non_null(strstr(text, "4/4 ResourceQuotaNotFit"));
	assert_non_null(strstr(
		text,
		"\nPossible fixes\n  other pods of namespace ns must end, or its ResourceQuota be raised: they use 4000 of 5000 nvidia.com/gpumem, they use 0 of 3 nvidia.com/gpu\n"));
	free(text);
	json_decref(e);
}

static void test_claims(void **state)
{
	assert_text("{" POD ",\"state\":\"bound\",\"on\":\"n\",\"claims\":["
		    "{\"claim\":\"a\",\"request\":\"r\",\"device\":\"gpu-0\",\"memory_mib\":2048},"
		    "{\"claim\":\"b\",\"request\":\"r\",\"device\":\"gpu-1\"}]}",
		    "ns/p is on node n\n"
		    "  claim a, request r has on gpu-0: 2.0 GiB\n"
		    "  claim b, request r has on gpu-1: all of the memory\n");
}

#define META(annotations) \
	"\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":" \
	"{" annotations "}}"

/* Where the scheduler was not heard, nothing is claimed that the pod does not say. */
static void test_of_the_pod_alone(void **state)
{
	json_t *pod = parse("{" META(
		"") ",\"spec\":{\"containers\":[{\"name\":\"main\"}]},\"status\":{"
		    "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"message\":"
		    "\"0/1 nodes are available\"}]}}");
	json_t *events = parse(
		"{\"items\":[{\"lastTimestamp\":\"2026-11-20T10:00:02Z\",\"reason\":\"B\","
		"\"message\":\"second\"},{\"eventTime\":\"2026-11-20T10:00:01Z\",\"reason\":"
		"\"A\",\"message\":\"first\"}]}");
	json_t *e = explain_of_pod(pod, events, "nobody answers");
	char *text = write_text(e);
	assert_string_equal(text, "ns/p waits\n\nkube-scheduler says:\n  0/1 nodes are available\n\n"
				  "Events:\n  A: first\n  B: second\n");
	assert_string_equal(explain_word(e, "not_asked"), "nobody answers");
	free(text);
	json_decref(e);
	json_decref(events);
	json_decref(pod);
	pod = parse("{" META(
		"\"hami.io/vgpu-node\":\"n\",\"hami.io/bind-phase\":\"success\","
		"\"hami.io/vgpu-devices-allocated\":\";GPU-a,NVIDIA,3000,30:;\"") ",\"spec\":{\"nodeName\":\"n\",\"initContainers\":[{\"name\":\"early\"}],"
										  "\"containers\":[{\"name\":\"main\"}]}}");
	e = explain_of_pod(pod, NULL, "");
	text = write_text(e);
	assert_string_equal(text,
			    "ns/p is on node n\n  main has on GPU-a: 2.9 GiB, 30 % of the time\n");
	free(text);
	json_decref(e);
	json_decref(pod);
	pod = parse("{" META(
		"\"hami.io/vgpu-node\":\"n\",\"hami.io/bind-phase\":\"success\","
		"\"allot.dev/borrowed\":\"GPU-a,NVIDIA,3000,30:;\","
		"\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,3000,0:;\"") ",\"spec\":{"
										"\"nodeName\":"
										"\"n\","
										"\"containers\":[{"
										"\"name\":\"main\"}"
										"]}}");
	e = explain_of_pod(pod, NULL, "");
	text = write_text(e);
	assert_string_equal(text,
			    "ns/p is on node n\n  main has on GPU-a: 2.9 GiB, up to 30 % of the "
			    "time while others leave it unused\n");
	free(text);
	json_decref(e);
	json_decref(pod);
}

/* Without file descriptors no query can be made. Its status is then not that of another server's answer, such as 404. */
static void test_a_query_that_cannot_begin(void **state)
{
	const struct kube_access access = { .server = (char *)"https://127.0.0.1:1" };
	struct error err = { 0 };
	struct rlimit before, none;
	json_t *answer = NULL;
	int status = 404;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int r = api_get(&access, "/api/v1/namespaces/ns/pods/p", NULL, &status, &answer, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(r < 0);
	assert_int_equal(status, 0);
	assert_null(answer);
	assert_string_not_equal(err.text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_none_of_ours),
		cmocka_unit_test(test_on_its_way),
		cmocka_unit_test(test_card_by_card),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_of_the_pod_alone),
		cmocka_unit_test(test_placed_by_use),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_a_query_that_cannot_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
