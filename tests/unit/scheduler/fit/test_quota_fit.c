/* Pods against their namespace's quota, by what they would get: filter, bind and preempt. */
#include "../cluster.h"
#include "verbs.h"

#include <errno.h>

#define MIB(n) "\"nvidia.com/gpumem\":\"" n "\""
#define PCT(n) "\"nvidia.com/gpumem-percentage\":\"" n "\""
#define CORES(n) "\"nvidia.com/gpucores\":\"" n "\""
#define GPUS(n) "\"nvidia.com/gpu\":\"" n "\""
#define LIMIT(kind, n) "\"limits.nvidia.com/" kind "\":\"" n "\""

static void says(struct model *m, json_t *pod, const char *node, const char *reason)
{
	json_t *args = filter_args(pod, node), *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), *reason ? "" : node);
	assert_string_equal(reason_of(answer, node), reason);
	json_decref(answer);
	json_decref(args);
}

static bool is_hopeless(struct model *m, const char *limits)
{
	json_t *args = filter_args(pod_object("h", limits), "n"), *answer = verbs_filter(m, args);
	bool is = json_object_get(json_object_get(answer, "FailedAndUnresolvableNodes"), "n");
	json_decref(answer);
	json_decref(args);
	return is;
}

static void run(struct model *m, const char *name, const char *node, int priority,
		const char *shares)
{
	json_t *pod = pod_object(name, GPU);
	allocate(pod, node, shares, "success", true);
	json_object_set_new(json_object_get(pod, "spec"), "priority", json_integer(priority));
	give_pod(m, pod);
}

/* Two cards of 8,192 MiB, on which "r" of the namespace has 4,000 MiB and 30 % of one. */
static struct model *cluster_with(const char *hard)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("n", 2, 8192, 100));
	run(m, "r", "n", 0, "n-0,NVIDIA,4000,30:;");
	give_quota(m, "q", hard);
	return m;
}

static void test_filter(void **state)
{
	static const struct {
		const char *hard, *limits, *reason;
	} rows[] = {
		{ LIMIT("gpumem", "5000"), MIB("1000"), "" },
		{ LIMIT("gpumem", "5000"), MIB("1001"), "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpumem", "5000"), GPUS("2") "," MIB("500"), "" },
		{ LIMIT("gpumem", "5000"), GPUS("2") "," MIB("501"), "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpumem", "3000"), MIB("1"), "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpumem", "0"), MIB("1"), "2/2 ResourceQuotaNotFit" },
		/* Before memory, in the order of the checks. */
		{ LIMIT("gpumem", "5000"), MIB("9000"), "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpumem", "50000"), MIB("9000"), "2/2 CardInsufficientMemory" },
		/* 2,048 MiB. */
		{ LIMIT("gpumem", "6048"), PCT("25"), "" },
		{ LIMIT("gpumem", "6047"), PCT("25"), "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpumem", "8096"), GPUS("2") "," PCT("25"), "" },
		{ LIMIT("gpumem", "8095"), GPUS("2") "," PCT("25"), "2/2 ResourceQuotaNotFit" },
		/* A whole card: the other one. */
		{ LIMIT("gpumem", "12192"), GPUS("1"), "" },
		{ LIMIT("gpumem", "12191"), GPUS("1"), "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpucores", "130"), GPUS("1"), "" },
		{ LIMIT("gpucores", "129"), GPUS("1"), "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpucores", "60"), MIB("1") "," CORES("30"), "" },
		{ LIMIT("gpucores", "60"), MIB("1") "," CORES("31"), "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpu", "2"), MIB("1"), "" },
		{ LIMIT("gpu", "2"), GPUS("2") "," MIB("1"), "2/2 ResourceQuotaNotFit" },
		/* Not its own vocabulary, and of MiB all the same. */
		{ LIMIT("gpumem", "4256"),
		  "\"tencent.com/vcuda-core\":\"10\",\"tencent.com/vcuda-memory\":\"1\"", "" },
		{ LIMIT("gpumem", "4255"),
		  "\"tencent.com/vcuda-core\":\"10\",\"tencent.com/vcuda-memory\":\"1\"",
		  "2/2 ResourceQuotaNotFit" },
		{ LIMIT("gpumem", "0"), "\"cpu\":\"1\"", "" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model *m = cluster_with(rows[i].hard);
		says(m, pod_object("p", rows[i].limits), "n", rows[i].reason);
		model_free(m);
	}
}

static void test_other_namespaces(void **state)
{
	struct model *m = cluster_with(LIMIT("gpumem", "0"));
	json_t *pod = pod_object("p", MIB("1000"));
	json_object_set_new(json_object_get(pod, "metadata"), "namespace", json_string("other"));
	says(m, pod, "n", "");
	model_free(m);
}

/* What more than all of the quota wants waits in vain for others' ends: kube-scheduler need not try them. */
static void test_hopeless(void **state)
{
	struct model *m = cluster_with(LIMIT("gpumem", "5000"));
	assert_false(is_hopeless(m, MIB("5000")));
	assert_true(is_hopeless(m, MIB("5001")));
	model_free(m);
}

/* ---- what depends on the cards ---- */

static const char *decides(struct model *m, const char *name, const char *node)
{
	static char text[512];
	struct decision d;
	struct error err;
	json_t *args = bind_args(name, node);
	int r = extender_decide(m, args, 1, &d, &err);
	json_decref(args);
	if (r < 0) {
		assert_int_equal(r, -ENOSPC);
		snprintf(text, sizeof(text), "%s", err.text);
		return text;
	}
	size_t at = 0;
	text[0] = '\0';
	for (size_t i = 0; i < d.shares.count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %llu", i ? "," : "",
				       d.shares.share[i].card,
				       (unsigned long long)d.shares.share[i].memory_mib);
	decision_free(&d);
	return text;
}

/* Cards of a node differ: what is asked in percent goes where the quota lets it. */
static void test_by_card(void **state)
{
	static const struct {
		const char *limits, *reason, *gets;
	} rows[] = {
		{ PCT("50"), "", "tiny 5000" },
		{ GPUS("1"), "", "tiny 10000" },
		{ PCT("80") "," CORES("10"), "", "tiny 8000" },
		{ GPUS("2") "," PCT("50"), "", "small 10000,tiny 5000" },
		{ GPUS("2") "," PCT("51"), "3/3 ResourceQuotaNotFit", NULL },
		{ GPUS("3") "," PCT("10"), "", "large 8000,small 2000,tiny 1000" },
		{ GPUS("3") "," PCT("14"), "3/3 ResourceQuotaNotFit", NULL },
		/* Too much by itself; too few others. */
		{ GPUS("3") "," PCT("19"),
		  "1/3 ResourceQuotaNotFit, 2/3 AllocatedCardsInsufficientRequest", NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model *m = model_of_nothing();
		give_node(m,
			  node_saying("n",
				      "[{\"id\":\"large\",\"index\":0,\"count\":10,\"devmem\":80000,"
				      "\"devcore\":100,\"type\":\"A\",\"health\":true},"
				      "{\"id\":\"small\",\"index\":1,\"count\":10,\"devmem\":20000,"
				      "\"devcore\":100,\"type\":\"B\",\"health\":true},"
				      "{\"id\":\"tiny\",\"index\":2,\"count\":10,\"devmem\":10000,"
				      "\"devcore\":100,\"type\":\"B\",\"health\":true}]",
				      NULL));
		give_quota(m, "q", LIMIT("gpumem", "15000"));
		/* By the policy the largest would be taken. */
		json_t *pod = pod_object("p", rows[i].limits);
		annotate(pod, "nvidia.com/nouse-gpuuuid", "none");
		says(m, pod, "n", rows[i].reason);
		if (rows[i].gets && strchr(rows[i].gets, ','))
			assert_string_equal(decides(m, "p", "n"), rows[i].gets);
		else if (rows[i].gets)
			assert_null(strstr(decides(m, "p", "n"), "large"));
		model_free(m);
	}
}

/* Each would do by itself, the first two together not. */
static void test_those_of_which_it_takes_least(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_saying("n",
				 "[{\"id\":\"a\",\"index\":0,\"count\":10,\"devmem\":24000,"
				 "\"devcore\":100,\"type\":\"A\",\"health\":true},"
				 "{\"id\":\"b\",\"index\":1,\"count\":10,\"devmem\":20000,"
				 "\"devcore\":100,\"type\":\"A\",\"health\":true},"
				 "{\"id\":\"c\",\"index\":2,\"count\":10,\"devmem\":10000,"
				 "\"devcore\":100,\"type\":\"A\",\"health\":true}]",
				 NULL));
	give_quota(m, "q", LIMIT("gpumem", "15000"));
	says(m, pod_object("p", GPUS("2") "," PCT("50")), "n", "");
	assert_string_equal(decides(m, "p", "n"), "b 10000,c 5000");
	give_quota(m, "q", LIMIT("gpumem", "14999"));
	says(m, pod_object("p", GPUS("2") "," PCT("50")), "n", "3/3 ResourceQuotaNotFit");
	model_free(m);
}

static json_t *pod_of_two(const char *first, const char *second, bool is_init)
{
	return object_of("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"uid-p\","
			 "\"resourceVersion\":\"1\"},\"spec\":{\"%s\":["
			 "{\"name\":\"i\",\"resources\":{\"limits\":{%s}}}%s"
			 "{\"name\":\"a\",\"resources\":{\"limits\":{%s}}}]},"
			 "\"status\":{\"phase\":\"Pending\"}}",
			 is_init ? "initContainers" : "containers", first,
			 is_init ? "],\"containers\":[" : ",", second);
}

static void test_several_containers(void **state)
{
	static const struct {
		const char *left, *first, *second;
		bool is_init;
		const char *reason;
	} rows[] = {
		{ "7000", MIB("3000"), MIB("4000"), false, "" },
		{ "6999", MIB("3000"), MIB("4000"), false, "2/2 ResourceQuotaNotFit" },
		{ "8192", PCT("50"), PCT("50"), false, "" },
		{ "8191", PCT("50"), PCT("50"), false, "2/2 ResourceQuotaNotFit" },
		{ "4096", PCT("50"), MIB("1"), false, "2/2 ResourceQuotaNotFit" },
		/* One has ended before the other begins, on the same card. */
		{ "4000", MIB("3000"), MIB("4000"), true, "" },
		{ "3999", MIB("3000"), MIB("4000"), true, "2/2 ResourceQuotaNotFit" },
		{ "4096", PCT("50"), MIB("3000"), true, "" },
		{ "4095", PCT("50"), MIB("3000"), true, "2/2 ResourceQuotaNotFit" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model *m = model_of_nothing();
		char hard[128];
		give_node(m, node_object("n", 2, 8192, 100));
		snprintf(hard, sizeof(hard), "\"limits.nvidia.com/gpumem\":\"%s\"", rows[i].left);
		give_quota(m, "q", hard);
		says(m, pod_of_two(rows[i].first, rows[i].second, rows[i].is_init), "n",
		     rows[i].reason);
		if (!*rows[i].reason) {
			struct model_quota_view view;
			assert_null(strstr(decides(m, "p", "n"), "Quota"));
			assert_true(model_find_quota(m, "ns", &view));
			assert_true(quota_allows(&view.limits, &view.used));
			assert_true(view.used.of[QUOTA_MEMORY] > 0);
		}
		model_free(m);
	}
}

/* An init container that finds no room beside the others has a card of its own, which counts as well. */
static void test_init_elsewhere(void **state)
{
	struct model *m = model_of_nothing();
	json_t *other = pod_object("o", GPU);
	give_node(m, node_object("n", 2, 8192, 100));
	json_object_set_new(json_object_get(other, "metadata"), "namespace", json_string("other"));
	allocate(other, "n", "n-0,NVIDIA,3000,0:n-1,NVIDIA,3000,0:;", "success", true);
	give_pod(m, other);
	give_quota(m, "q", LIMIT("gpumem", "9000") "," LIMIT("gpu", "1"));
	/* Cards by their cores: 60 and 50 fit together on none, and one after the other on one. */
	says(m, pod_of_two(MIB("5000") "," CORES("60"), MIB("4000") "," CORES("50"), true), "n", "");
	give_quota(m, "q", LIMIT("gpumem", "9000") "," LIMIT("gpu", "2"));
	says(m, pod_of_two(GPUS("2") "," MIB("5000"), MIB("4000"), true), "n",
	     "2/2 ResourceQuotaNotFit");
	give_quota(m, "q", LIMIT("gpumem", "10000") "," LIMIT("gpu", "2"));
	says(m, pod_of_two(GPUS("2") "," MIB("5000"), MIB("4000"), true), "n", "");
	model_free(m);
}

/* ---- bind ---- */

/* Filter has let both through: the second finds what the first was given. */
static void test_bind(void **state)
{
	struct model *m = cluster_with(LIMIT("gpumem", "6000"));
	give_pod(m, pod_object("a", MIB("1500")));
	give_pod(m, pod_object("b", MIB("1500")));
	says(m, pod_object("a", MIB("1500")), "n", "");
	says(m, pod_object("b", MIB("1500")), "n", "");
	assert_string_equal(decides(m, "a", "n"), "n-1 1500");
	assert_string_equal(decides(m, "b", "n"), "pod ns/b: node n: 2/2 ResourceQuotaNotFit");
	/* Its own does not stand in its way. */
	assert_string_equal(decides(m, "a", "n"), "n-1 1500");
	model_release(m, "uid-a");
	assert_string_equal(decides(m, "b", "n"), "n-1 1500");
	assert_string_equal(decides(m, "a", "n"), "pod ns/a: node n: 2/2 ResourceQuotaNotFit");
	give_quota(m, "q", LIMIT("gpumem", "7000"));
	assert_string_equal(decides(m, "a", "n"), "n-1 1500");
	model_free(m);
}

/* An autoscaler's question about a node that there is not yet. */
static void test_dry_run(void **state)
{
	struct model *m = cluster_with(LIMIT("gpumem", "6000"));
	for (int i = 0; i < 2; i++) {
		json_t *args = json_pack("{s:o,s:{s:[o]}}", "Pod",
					 pod_object("p", i ? MIB("2001") : MIB("2000")), "Nodes",
					 "items", node_object("new", 2, 8192, 100));
		json_t *answer = verbs_filter(m, args);
		assert_string_equal(reason_of(answer, "new"), i ? "2/2 ResourceQuotaNotFit" : "");
		json_decref(answer);
		json_decref(args);
	}
	model_free(m);
}

/* ---- preempt ---- */

static const char *victims_for(struct model *m, const char *limits, int priority)
{
	static char text[512];
	json_t *pod = pod_object("new", limits), *one;
	size_t i, at = 0;
	json_object_set_new(json_object_get(pod, "spec"), "priority", json_integer(priority));
	json_t *args = json_pack(
		"{s:o,s:o}", "Pod", pod, "NodeNameToMetaVictims",
		object_of("{\"n\":{\"Pods\":[{\"UID\":\"cpu\"}],\"NumPDBViolations\":0}}"));
	json_t *answer = extender_preempt(m, args);
	json_t *n = json_object_get(json_object_get(answer, "NodeNameToMetaVictims"), "n");
	snprintf(text, sizeof(text), "%s", n ? "" : "none");
	json_array_foreach(json_object_get(n, "Pods"), i, one)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? "," : "",
				       json_string_value(json_object_get(one, "UID")));
	json_decref(args);
	json_decref(answer);
	return text;
}

static void run_other(struct model *m, const char *name, int priority, const char *shares)
{
	json_t *pod = pod_object(name, GPU);
	json_object_set_new(json_object_get(pod, "metadata"), "namespace", json_string("other"));
	allocate(pod, "n", shares, "success", true);
	json_object_set_new(json_object_get(pod, "spec"), "priority", json_integer(priority));
	give_pod(m, pod);
}

/* Where the quota is what lacks, others' ends would be in vain: only pods of its namespace are named. */
static void test_preempt(void **state)
{
	static const struct {
		const char *limits;
		int priority;
		const char *victims;
	} rows[] = {
		{ MIB("1000"), 10, "cpu" },
		{ MIB("2000"), 10, "cpu,uid-small" },
		{ MIB("5000"), 10, "cpu,uid-r" },
		/* Neither's end suffices by itself. */
		{ MIB("6000"), 10, "cpu,uid-small,uid-r" },
		/* And room on a card. */
		{ GPUS("2") "," MIB("2500"), 10, "cpu,uid-r" },
		{ GPUS("2") "," MIB("3300"), 10, "cpu,uid-others,uid-small,uid-r" },
		/* Those of its namespace are above it; those below it are not of it. */
		{ MIB("2000"), 3, "none" },
		{ MIB("7000"), 10, "none" },
	};
	struct model *m = model_of_nothing();
	give_node(m, node_object("n", 2, 8192, 100));
	give_quota(m, "q", LIMIT("gpumem", "6700"));
	run(m, "r", "n", 5, "n-0,NVIDIA,4000,0:;");
	run(m, "small", "n", 5, "n-0,NVIDIA,1700,0:;");
	run_other(m, "others", 1, "n-1,NVIDIA,5000,0:;");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(victims_for(m, rows[i].limits, rows[i].priority),
				    rows[i].victims);
	struct model_quota_view view;
	assert_true(model_find_quota(m, "ns", &view));
	assert_int_equal(view.used.of[QUOTA_MEMORY], 5700);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_other_namespaces),
		cmocka_unit_test(test_hopeless),
		cmocka_unit_test(test_by_card),
		cmocka_unit_test(test_those_of_which_it_takes_least),
		cmocka_unit_test(test_several_containers),
		cmocka_unit_test(test_init_elsewhere),
		cmocka_unit_test(test_bind),
		cmocka_unit_test(test_dry_run),
		cmocka_unit_test(test_preempt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
