/* What namespaces may have and have: quotas as they are read, and as the model keeps them. */
#include "../cluster.h"
#include "verbs.h"

#include <errno.h>

#define MIB(n) "\"nvidia.com/gpumem\":\"" n "\""
#define LIMIT(kind, n) "\"limits.nvidia.com/" kind "\":\"" n "\""

/* ---- one object ---- */

static int reads(const char *hard, struct quota_limits *ret, struct error *err)
{
	json_t *quota = object_of("{\"metadata\":{\"name\":\"q\",\"namespace\":\"ns\"},\"spec\":"
				  "{\"hard\":%s}}",
				  hard);
	int r = quota_read(quota, &request_terms_default, ret, err);
	json_decref(quota);
	return r;
}

static void test_keys(void **state)
{
	static const struct {
		const char *hard;
		int64_t memory, cores, gpus; /* -1: no limit */
	} rows[] = {
		{ "{}", -1, -1, -1 },
		{ "null", -1, -1, -1 },
		{ "{\"limits.cpu\":\"-3\",\"pods\":\"many\"}", -1, -1, -1 },
		{ "{" LIMIT("gpumem", "20000") "}", 20000, -1, -1 },
		{ "{" LIMIT("gpumem", "20k") "," LIMIT("gpucores", "0") "}", 20000, 0, -1 },
		{ "{\"limits.nvidia.com/gpumem\":4096}", 4096, -1, -1 },
		{ "{" LIMIT("gpu", "3") "}", -1, -1, 3 },
		/* Kubernetes counts that itself. */
		{ "{\"requests.nvidia.com/gpu\":\"3\"}", -1, -1, -1 },
		/* And these only as they are written. */
		{ "{\"requests.nvidia.com/gpumem\":\"7\",\"requests.nvidia.com/gpucores\":\"8\"}",
		  7, 8, -1 },
		{ "{\"requests.nvidia.com/gpumem\":\"7\"," LIMIT("gpumem", "9") "}", 7, -1, -1 },
		{ "{\"requests.nvidia.com/gpumem\":\"9\"," LIMIT("gpumem", "7") "}", 7, -1, -1 },
		{ "{\"limits.nvidia.com/gpumem-percentage\":\"9\"}", -1, -1, -1 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int64_t wanted[QUOTA_KINDS] = { rows[i].memory, rows[i].cores, rows[i].gpus };
		struct quota_limits limits;
		struct error err;
		if (reads(rows[i].hard, &limits, &err) < 0)
			fail_msg("%s: %s", rows[i].hard, err.text);
		for (int k = 0; k < QUOTA_KINDS; k++) {
			assert_int_equal(limits.has[k], wanted[k] >= 0);
			assert_int_equal(limits.most[k], wanted[k] >= 0 ? wanted[k] : 0);
		}
	}
}

static void test_nonsense(void **state)
{
	static const struct {
		const char *hard, *text;
	} rows[] = {
		{ "[]", "spec.hard: must be an object" },
		{ "{" LIMIT("gpumem", "-1") "}",
		  "spec.hard: limits.nvidia.com/gpumem: '-1': must be a whole number up to "
		  "9223372036854775807" },
		{ "{" LIMIT("gpucores", "1500m") "}",
		  "spec.hard: limits.nvidia.com/gpucores: '1500m': must be a whole number up to "
		  "9223372036854775807" },
		{ "{" LIMIT("gpumem", "99E") "}",
		  "spec.hard: limits.nvidia.com/gpumem: '99E': must be a whole number up to "
		  "9223372036854775807" },
		{ "{\"requests.nvidia.com/gpumem\":\"much\"}",
		  "spec.hard: requests.nvidia.com/gpumem: 'much': must be a whole number up to "
		  "9223372036854775807" },
		{ "{" LIMIT("gpu", "") "}",
		  "spec.hard: limits.nvidia.com/gpu: '': must be a whole number up to "
		  "9223372036854775807" },
		{ "{\"limits.nvidia.com/gpu\":{}}",
		  "spec.hard: limits.nvidia.com/gpu: '': must be a whole number up to "
		  "9223372036854775807" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quota_limits limits = { .most = { 7 } };
		struct error err = { 0 };
		assert_int_equal(reads(rows[i].hard, &limits, &err), -EINVAL);
		assert_string_equal(err.text, rows[i].text);
		assert_int_equal(limits.most[0], 7);
	}
}

/* ---- the model ---- */

/* "-": no limit. */
static void has_quota(const struct model *m, const char *text)
{
	struct model_quota_view view;
	char is[128] = "none";
	if (model_find_quota(m, "ns", &view)) {
		size_t at = 0;
		for (int k = 0; k < QUOTA_KINDS; k++) {
			char limit[24] = "-";
			if (view.limits.has[k])
				snprintf(limit, sizeof(limit), "%llu",
					 (unsigned long long)view.limits.most[k]);
			at += (size_t)snprintf(is + at, sizeof(is) - at, "%s%llu/%s", k ? " " : "",
					       (unsigned long long)view.used.of[k], limit);
		}
	}
	assert_string_equal(is, text);
}

static json_t *running(const char *name, const char *shares)
{
	json_t *pod = pod_object(name, GPU);
	allocate(pod, "n", shares, "success", true);
	return pod;
}

static void ends(struct model *m, const char *name)
{
	json_t *pod = pod_object(name, GPU);
	model_remove_pod(m, pod);
	json_decref(pod);
}

static void quota_ends(struct model *m, const char *name)
{
	json_t *quota = object_of("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\"}}", name);
	model_remove_quota(m, quota);
	json_decref(quota);
}

static void test_sums(void **state)
{
	struct model *m = model_of_nothing();
	/* Before its node is known, and before there is a quota. */
	give_pod(m, running("a", "n-0,NVIDIA,3000,30:n-1,NVIDIA,3000,30:;"));
	has_quota(m, "none");
	give_quota(m, "q", LIMIT("gpumem", "20000"));
	has_quota(m, "6000/20000 60/- 2/-");
	give_node(m, node_object("n", 2, 8192, 100));
	give_node(m, node_object("n", 3, 8192, 100));
	has_quota(m, "6000/20000 60/- 2/-");
	json_t *other = running("o", "n-0,NVIDIA,1,1:;");
	json_object_set_new(json_object_get(other, "metadata"), "namespace", json_string("other"));
	give_pod(m, other);
	give_pod(m, running("b", "n-0,NVIDIA,1000,0:;"));
	has_quota(m, "7000/20000 60/- 3/-");
	/* It changes, and what can't be read changes nothing. */
	give_pod(m, running("b", "n-0,NVIDIA,2000,0:;"));
	has_quota(m, "8000/20000 60/- 3/-");
	json_t *odd = running("b", "n-0,NVIDIA,x,0:;");
	assert_true(model_update_pod(m, odd, NULL) < 0);
	json_decref(odd);
	has_quota(m, "8000/20000 60/- 3/-");
	ends(m, "a");
	has_quota(m, "2000/20000 0/- 1/-");
	model_list_begin(m, MODEL_PODS);
	model_list_end(m, MODEL_PODS);
	has_quota(m, "0/20000 0/- 0/-");
	model_free(m);
}

/* An init container has ended before the others begin: a card of both counts the more. */
static void test_init_containers(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = running("p", "n-0,NVIDIA,5000,10:;n-0,NVIDIA,2000,20:;n-1,NVIDIA,100,0:;");
	json_t *spec = json_object_get(pod, "spec");
	json_object_set_new(spec, "initContainers", object_of("[{\"name\":\"i\"}]"));
	json_array_append_new(json_object_get(spec, "containers"), object_of("{\"name\":\"b\"}"));
	give_pod(m, pod);
	give_quota(m, "q", LIMIT("gpumem", "9000"));
	has_quota(m, "5100/9000 20/- 2/-");
	model_free(m);
}

static void test_several(void **state)
{
	struct model *m = model_of_nothing();
	give_quota(m, "q", LIMIT("gpumem", "20000") "," LIMIT("gpu", "3"));
	give_quota(m, "r", LIMIT("gpumem", "10000") "," LIMIT("gpucores", "50"));
	has_quota(m, "0/10000 0/50 0/3");
	/* What it says no longer holds no longer. */
	give_quota(m, "r", LIMIT("gpucores", "60"));
	has_quota(m, "0/20000 0/60 0/3");
	quota_ends(m, "q");
	has_quota(m, "0/- 0/60 0/-");
	give_quota(m, "r", "\"pods\":\"1\"");
	has_quota(m, "none");
	quota_ends(m, "r");
	quota_ends(m, "never");
	/* A list that does not name it. */
	give_quota(m, "q", LIMIT("gpu", "3"));
	give_quota(m, "r", LIMIT("gpu", "4"));
	model_list_begin(m, MODEL_QUOTAS);
	give_quota(m, "r", LIMIT("gpu", "4"));
	has_quota(m, "0/- 0/- 0/3");
	model_list_end(m, MODEL_QUOTAS);
	has_quota(m, "0/- 0/- 0/4");
	model_free(m);
}

/* A watch may bring anything: what was known stays, through a list as well. */
static void test_what_is_refused(void **state)
{
	static const char *const rows[] = {
		"{}",
		"{\"metadata\":{\"name\":\"q\"}}",
		"{\"metadata\":{\"name\":\"\",\"namespace\":\"ns\"}}",
		"{\"metadata\":{\"name\":7,\"namespace\":\"ns\"}}",
		"{\"metadata\":[],\"spec\":7}",
	};
	struct model *m = model_of_nothing();
	struct error err;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *quota = object_of("%s", rows[i]);
		assert_int_equal(model_update_quota(m, quota, &err), -EINVAL);
		model_remove_quota(m, quota);
		json_decref(quota);
	}
	give_quota(m, "q", LIMIT("gpumem", "20000"));
	json_t *quota = object_of("{\"metadata\":{\"name\":\"q\",\"namespace\":\"ns\"},\"spec\":{"
				  "\"hard\":{" LIMIT("gpumem", "-5") "," LIMIT("gpu", "1") "}}}");
	model_list_begin(m, MODEL_QUOTAS);
	assert_int_equal(model_update_quota(m, quota, &err), -EINVAL);
	assert_string_equal(err.text, "ResourceQuota ns/q: spec.hard: limits.nvidia.com/gpumem: "
				      "'-5': must be a whole number up to 9223372036854775807");
	model_list_end(m, MODEL_QUOTAS);
	has_quota(m, "0/20000 0/- 0/-");
	json_decref(quota);
	model_free(m);
}

/* ---- who waits for more ---- */

#define S UINT64_C(1000000000)

static void filter(struct model *m, const char *name, const char *in)
{
	json_t *pod = pod_object(name, MIB("8000"));
	json_object_set_new(json_object_get(pod, "metadata"), "namespace", json_string(in));
	assert_int_equal(model_update_pod(m, pod, NULL), 0);
	json_t *args = filter_args(pod, "n"), *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), "");
	json_decref(answer);
	json_decref(args);
}

static void tells(struct model *m, uint64_t at_ns, const char *name)
{
	struct model_requeue_pod told[4];
	model_advance(m, at_ns);
	size_t count = model_take_requeue(m, told, 4);
	assert_int_equal(count, *name ? 1 : 0);
	if (count)
		assert_string_equal(told[0].name, name);
}

/* A quota's growth is no news to kube-scheduler: who was turned away is told. */
static void test_called_back(void **state)
{
	struct model *m = model_of_nothing();
	model_advance(m, S);
	give_node(m, node_object("n", 1, 4096, 100));
	give_quota(m, "q", LIMIT("gpumem", "5000"));
	filter(m, "p", "ns");
	filter(m, "o", "other");
	tells(m, 10 * S, "");
	/* Less, and the same again, is no news. */
	give_quota(m, "q", LIMIT("gpumem", "4000"));
	give_quota(m, "q", LIMIT("gpumem", "4000"));
	tells(m, 20 * S, "");
	give_quota(m, "q", LIMIT("gpumem", "9000"));
	tells(m, 21 * S, "");
	tells(m, 23 * S, "p");
	tells(m, 30 * S, "");
	filter(m, "p", "ns");
	quota_ends(m, "q");
	tells(m, 40 * S, "p");
	model_free(m);
}

/* Each namespace in turn, also one without a quota. */
static void count(void *data, const struct model_quota_view *view)
{
	uint64_t *sum = data;
	*sum += view->used.of[QUOTA_MEMORY] + (view->limits.has[QUOTA_GPUS] ? 100000 : 0);
}

static void test_views(void **state)
{
	struct model *m = model_of_nothing();
	uint64_t sum = 0;
	give_pod(m, running("a", "n-0,NVIDIA,3000,30:;"));
	model_each_quota(m, count, &sum);
	assert_int_equal(sum, 3000);
	give_quota(m, "q", LIMIT("gpu", "3"));
	sum = 0;
	model_each_quota(m, count, &sum);
	assert_int_equal(sum, 103000);
	ends(m, "a");
	quota_ends(m, "q");
	sum = 0;
	model_each_quota(m, count, &sum);
	assert_int_equal(sum, 0);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),        cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_sums),        cmocka_unit_test(test_init_containers),
		cmocka_unit_test(test_several),     cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_called_back), cmocka_unit_test(test_views),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
