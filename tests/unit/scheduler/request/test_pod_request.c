/* What a pod asks for, in either vocabulary; and what of it can't be. */
#include <errno.h>

#include "../cluster.h"
#include "scheduler/request/pod_request.h"

#define MIB (UINT64_C(1) << 20)

static int read_object(json_t *object, const struct request_terms *terms, struct request *ret,
		       struct error *err)
{
	struct kube_pod *pod;
	assert_int_equal(pod_read(object, &pod, NULL), 0);
	json_decref(object);
	int r = request_read(pod, terms, ret, err);
	pod_free(pod);
	return r;
}

static struct request read_good(json_t *object)
{
	struct request request;
	struct error err;
	if (read_object(object, &request_terms_default, &request, &err) < 0)
		fail_msg("%s", err.text);
	return request;
}

static void says_error(json_t *object, const char *text)
{
	struct request request;
	struct error err = { 0 };
	assert_int_equal(read_object(object, &request_terms_default, &request, &err), -EINVAL);
	assert_string_equal(err.text, text);
}

static void test_limits(void **state)
{
	static const struct {
		const char *limits;
		unsigned count;
		enum place_memory memory;
		uint64_t mib;
		unsigned memory_pct;
		uint32_t cores_mpct;
	} rows[] = {
		{ GPU, 1, PLACE_MEMORY_ALL, 0, 0, 100000 },
		{ "\"nvidia.com/gpu\":2", 2, PLACE_MEMORY_ALL, 0, 0, 100000 },
		{ GPU ",\"nvidia.com/gpumem\":\"3k\"", 1, PLACE_MEMORY_BYTES, 3000, 0, 0 },
		{ "\"nvidia.com/gpumem\":\"4096\"", 1, PLACE_MEMORY_BYTES, 4096, 0, 0 },
		{ "\"nvidia.com/gpucores\":\"30\"", 1, PLACE_MEMORY_ALL, 0, 0, 30000 },
		{ "\"nvidia.com/gpumem-percentage\":\"50\"", 1, PLACE_MEMORY_PCT, 0, 50, 0 },
		{ GPU ",\"nvidia.com/gpucores\":\"0\"", 1, PLACE_MEMORY_ALL, 0, 0, 0 },
		/* MiB go before percent, as HAMi has it. */
		{ "\"nvidia.com/gpumem\":\"9\",\"nvidia.com/gpumem-percentage\":\"50\"", 1,
		  PLACE_MEMORY_BYTES, 9, 0, 0 },
		{ "\"tencent.com/vcuda-core\":\"30\",\"tencent.com/vcuda-memory\":\"20\"", 1,
		  PLACE_MEMORY_BYTES, 5120, 0, 30000 },
		{ "\"tencent.com/vcuda-core\":\"200\"", 2, PLACE_MEMORY_ALL, 0, 0, 100000 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct request r = read_good(pod_object("a", rows[i].limits));
		assert_int_equal(r.count, 1);
		const struct place_request *p = &r.part[0].place;
		assert_int_equal(p->count, rows[i].count);
		assert_int_equal(p->memory, rows[i].memory);
		assert_int_equal(p->memory_bytes, rows[i].mib * MIB);
		assert_int_equal(p->memory_pct, rows[i].memory_pct);
		assert_int_equal(p->cores_mpct, rows[i].cores_mpct);
		request_free(&r);
	}
}

/* The node raises a running container to what its annotations ask for, so place it by the larger of both. */
static void test_annotated(void **state)
{
	static const struct {
		const char *limits, *annotation, *value;
		uint64_t mib;
		uint32_t cores_mpct;
	} rows[] = {
		{ "\"nvidia.com/gpumem\":\"3000\"", "allot.dev/memory", "8GiB", 8192, 0 },
		{ "\"nvidia.com/gpumem\":\"3000\"", "main.allot.dev/memory", "8GiB", 8192, 0 },
		{ "\"nvidia.com/gpumem\":\"3000\"", "allot.dev/memory", "1GiB", 3000, 0 },
		{ "\"nvidia.com/gpumem\":\"3000\"", "allot.dev/memory", "3145729001B", 3001, 0 },
		{ "\"nvidia.com/gpumem\":\"3000\"", "allot.dev/cores", "29.5", 3000, 30000 },
		{ "\"nvidia.com/gpumem\":\"3000\",\"nvidia.com/gpucores\":\"40\"",
		  "allot.dev/cores", "30", 3000, 40000 },
		{ "\"nvidia.com/gpu\":\"2\",\"nvidia.com/gpumem\":\"3000\"", "allot.dev/memory",
		  "1GiB,4GiB", 4096, 0 },
		/* An annotation that the node refuses changes nothing. */
		{ "\"nvidia.com/gpumem\":\"3000\"", "allot.dev/memory", "4GiB,4GiB", 3000, 0 },
		{ "\"nvidia.com/gpumem\":\"3000\"", "allot.dev/memory", "lots", 3000, 0 },
		/* The least, of a part that only the card makes a number of bytes. */
		{ "\"nvidia.com/gpumem-percentage\":\"50\"", "allot.dev/memory", "8GiB", 8192, 0 },
		{ "\"tencent.com/vcuda-core\":\"30\",\"tencent.com/vcuda-memory\":\"20\"",
		  "allot.dev/memory", "8GiB", 8192, 30000 },
		{ GPU, "allot.dev/memory", "8GiB", 0, 100000 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *pod = pod_object("a", rows[i].limits);
		annotate(pod, rows[i].annotation, rows[i].value);
		struct request r = read_good(pod);
		const struct place_request *p = &r.part[0].place;
		assert_int_equal(p->memory_bytes, rows[i].mib * MIB);
		assert_int_equal(p->cores_mpct, rows[i].cores_mpct);
		request_free(&r);
	}
}

static void test_none(void **state)
{
	static const char *const rows[] = { "", "\"cpu\":\"1\"", "\"nvidia.com/gpu\":\"0\"" };
	for (size_t i = 0; i < 3; i++) {
		json_t *pod = pod_object("a", rows[i]);
		/* Who asks for no cards may say of them what he likes. */
		annotate(pod, "hami.io/gpu-scheduler-policy", "nonsense");
		struct request r = read_good(pod);
		assert_int_equal(r.count, 0);
		assert_int_equal(r.containers, 1);
		request_free(&r);
	}
}

static void test_bad(void **state)
{
	static const char *const rows[][2] = {
		{ "\"nvidia.com/gpu\":\"-1\"",
		  "container main: nvidia.com/gpu: '-1': must be a whole number up to 2147483647" },
		{ "\"nvidia.com/gpu\":\"500m\"", "container main: nvidia.com/gpu: '500m': must be "
						 "a whole number up to 2147483647" },
		{ "\"nvidia.com/gpu\":0.5", "container main: nvidia.com/gpu: '0.5': must be a "
					    "whole number up to 2147483647" },
		{ "\"nvidia.com/gpu\":\"99999999999999999999\"",
		  "container main: nvidia.com/gpu: '99999999999999999999': must be a whole number "
		  "up "
		  "to 2147483647" },
		{ "\"nvidia.com/gpumem\":\"8Gi\"",
		  "container main: nvidia.com/gpumem: '8Gi': must be a whole number up to "
		  "2147483647" },
		{ "\"nvidia.com/gpumem\":\"0\"",
		  "container main: nvidia.com/gpumem: 0: must be 1 or more" },
		{ "\"nvidia.com/gpumem-percentage\":\"101\"",
		  "container main: nvidia.com/gpumem-percentage: '101': must be a whole number up "
		  "to "
		  "100" },
		{ "\"nvidia.com/gpumem-percentage\":\"0\"",
		  "container main: nvidia.com/gpumem-percentage: 0: must be 1 or more" },
		{ "\"nvidia.com/gpucores\":\"101\"",
		  "container main: nvidia.com/gpucores: '101': must be a whole number up to 100" },
		{ "\"nvidia.com/gpu\":\"0\",\"nvidia.com/gpumem\":\"5\"",
		  "container main: nvidia.com/gpu: 0: must be 1 or more when memory or cores are requested" },
		{ "\"tencent.com/vcuda-memory\":\"5\"",
		  "container main: tencent.com/vcuda-memory is requested without tencent.com/vcuda-core: request both" },
		{ GPU ",\"tencent.com/vcuda-core\":\"100\"",
		  "container main: requests both nvidia.com/gpu and tencent.com/vcuda-core: use only one of them" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		says_error(pod_object("a", rows[i][0]), rows[i][1]);
}

static void test_wishes(void **state)
{
	json_t *pod = pod_object("a", GPU);
	annotate(pod, "nvidia.com/use-gputype", "H200, a100 ,,");
	annotate(pod, "nvidia.com/nouse-gpuuuid", "GPU-b");
	annotate(pod, "nvidia.com/numa-bind", "true");
	annotate(pod, "nvidia.com/vgpu-mode", "hami-core");
	annotate(pod, "hami.io/gpu-scheduler-policy", "numa, binpack,mutex,topology-aware");
	annotate(pod, "hami.io/node-scheduler-policy", "spread");
	annotate(pod, "hami.io/device-scoring-weights", "slot=1,core=0,memory=3");
	struct request r = read_good(pod);
	const struct place_request *p = &r.part[0].place;
	assert_int_equal(r.use_type.count, 2);
	assert_string_equal(r.use_type.word[0], "H200");
	assert_string_equal(r.use_type.word[1], "a100");
	assert_int_equal(r.nouse_type.count, 0);
	assert_int_equal(p->use_uuid.count, 0);
	assert_int_equal(p->nouse_uuid.count, 1);
	assert_string_equal(p->nouse_uuid.word[0], "GPU-b");
	assert_true(p->numa_bind && r.is_mutex && r.node_policy == REQUEST_NODES_SPREAD);
	assert_string_equal(r.mode, "hami-core");
	assert_int_equal(p->evaluator_count, 3);
	assert_string_equal(p->evaluator[0], "link");
	assert_string_equal(p->evaluator[1], "binpack");
	assert_string_equal(p->evaluator[2], "fragment");
	assert_true(p->has_weights && p->weights.slots == 1 && p->weights.cores == 0 &&
		    p->weights.memory == 3);
	request_free(&r);
}

/* Every word at once: as many evaluators as a request has place for. */
static void test_all_policies(void **state)
{
	static const char *const expected[PLACE_MAX_EVALUATORS] = { "room", "spread", "link",
								    "binpack", "fragment" };
	json_t *pod = pod_object("a", GPU);
	annotate(pod, "hami.io/gpu-scheduler-policy",
		 "fragmentation,spread,numa,binpack,topology-aware,mutex,fragmentation");
	annotate(pod, "hami.io/node-scheduler-policy", "fragmentation");
	struct request r = read_good(pod);
	const struct place_request *p = &r.part[0].place;
	assert_int_equal(p->evaluator_count, PLACE_MAX_EVALUATORS);
	for (unsigned i = 0; i < PLACE_MAX_EVALUATORS; i++)
		assert_string_equal(p->evaluator[i], expected[i]);
	assert_true(r.node_policy == REQUEST_NODES_FRAGMENTATION && r.is_mutex);
	request_free(&r);
}

static void test_bad_wishes(void **state)
{
	static const char *const rows[][3] = {
		{ "hami.io/gpu-scheduler-policy", "best",
		  "hami.io/gpu-scheduler-policy: 'best': must be a comma-separated list of binpack, spread, topology-aware, numa, mutex and fragmentation" },
		{ "hami.io/node-scheduler-policy", "mutex",
		  "hami.io/node-scheduler-policy: 'mutex': must be binpack, spread or fragmentation" },
		{ "hami.io/device-scoring-weights", "slot=1,core=1",
		  "hami.io/device-scoring-weights: 'slot=1,core=1': must be "
		  "slot=N,core=N,memory=N, "
		  "with at least one N above 0" },
		{ "hami.io/device-scoring-weights", "slot=0,core=0,memory=0",
		  "hami.io/device-scoring-weights: 'slot=0,core=0,memory=0': must be "
		  "slot=N,core=N,memory=N, with at least one N above 0" },
		{ "hami.io/device-scoring-weights", "slot=1,slot=1,core=1,memory=1",
		  "hami.io/device-scoring-weights: 'slot=1': must be slot=N, core=N or "
		  "memory=N, each once" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *pod = pod_object("a", GPU);
		annotate(pod, rows[i][0], rows[i][1]);
		says_error(pod, rows[i][2]);
	}
}

static void test_containers(void **state)
{
	struct request r = read_good(object_of(
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
		"\"resourceVersion\":\"1\"},\"spec\":{\"initContainers\":["
		"{\"name\":\"fetch\",\"resources\":{\"limits\":{" GPU "}}},"
		"{\"name\":\"proxy\",\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{" GPU
		"}}}],\"containers\":[{\"name\":\"log\"},"
		"{\"name\":\"main\",\"resources\":{\"limits\":{" GPU "}}}]}}"));
	assert_int_equal(r.containers, 4);
	assert_int_equal(r.count, 3);
	assert_true(r.part[0].is_init && !r.part[0].is_sidecar && r.part[0].container == 0);
	assert_true(!r.part[1].is_init && r.part[1].is_sidecar && r.part[1].container == 1);
	assert_true(!r.part[2].is_init && !r.part[2].is_sidecar && r.part[2].container == 3);
	request_free(&r);
}

/* Two pods that are alike but for one thing, and one that is the same. */
static void test_sources(void **state)
{
	static const char *const limits[] = { GPU,
					      "\"nvidia.com/gpu\":\"2\"",
					      "\"nvidia.com/gpumem\":\"1000\"",
					      "\"nvidia.com/gpumem\":\"1001\"",
					      "\"nvidia.com/gpumem-percentage\":\"10\"",
					      "\"nvidia.com/gpucores\":\"10\"",
					      "" };
	static const char *const wishes[][2] = {
		{ "none", "" },
		{ "nvidia.com/use-gpuuuid", "GPU-1" },
		{ "nvidia.com/use-gpuuuid", "GPU-2" },
		{ "nvidia.com/nouse-gpuuuid", "GPU-2" },
		{ "nvidia.com/use-gputype", "H200" },
		{ "nvidia.com/use-gputype", "H200,A100" },
		{ "nvidia.com/nouse-gputype", "H200" },
		{ "nvidia.com/numa-bind", "true" },
		{ "nvidia.com/vgpu-mode", "hami-core" },
		{ "hami.io/gpu-scheduler-policy", "binpack" },
		{ "hami.io/gpu-scheduler-policy", "mutex" },
		{ "hami.io/gpu-scheduler-policy", "topology-aware,numa" },
		{ "hami.io/node-scheduler-policy", "spread" },
		{ "hami.io/device-scoring-weights", "slot=1,core=1,memory=3" },
		{ "hami.io/device-scoring-weights", "slot=1,core=2,memory=3" },
		{ "allot.dev/memory", "8GiB" },
		{ "main.allot.dev/memory", "8GiB" },
	};
	enum { LIMITS = 7, WISHES = 17, ALL = LIMITS + WISHES };
	uint64_t source[2][ALL];
	for (size_t side = 0; side < 2; side++)
		for (size_t i = 0; i < ALL; i++) {
			struct kube_pod *read;
			json_t *pod = pod_object(side ? "a" : "b", i < LIMITS ? limits[i] : GPU);
			if (i >= LIMITS)
				annotate(pod, wishes[i - LIMITS][0], wishes[i - LIMITS][1]);
			/* What others write says nothing of what it asks for. */
			annotate(pod, side ? "hami.io/vgpu-time" : "allot.dev/room-since", "1");
			annotate(pod, side ? "a.b/c" : "batch.kubernetes.io/index", "1");
			assert_int_equal(pod_read(pod, &read, NULL), 0);
			source[side][i] = request_source(read);
			pod_free(read);
			json_decref(pod);
		}
	for (size_t i = 0; i < ALL; i++)
		for (size_t k = 0; k < ALL; k++) {
			/* The first of both says the same. */
			bool is_same = i == k || (i % LIMITS == 0 && k % LIMITS == 0 &&
						  i <= LIMITS && k <= LIMITS);
			if ((source[0][i] == source[1][k]) != is_same)
				fail_msg("%zu and %zu", i, k);
		}
}

static void test_terms(void **state)
{
	struct request_terms terms = request_terms_default;
	struct request r;
	terms.count = "example.com/card";
	terms.default_memory_mib = 2000;
	terms.default_cores_pct = 20;
	assert_int_equal(
		read_object(pod_object("a", "\"example.com/card\":\"1\""), &terms, &r, NULL), 0);
	assert_int_equal(r.part[0].place.memory_bytes, 2000 * MIB);
	assert_int_equal(r.part[0].place.cores_mpct, 20000);
	request_free(&r);
	assert_int_equal(read_object(pod_object("a", GPU), &terms, &r, NULL), 0);
	assert_int_equal(r.count, 0);
	request_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_annotated),  cmocka_unit_test(test_limits),
		cmocka_unit_test(test_none),       cmocka_unit_test(test_bad),
		cmocka_unit_test(test_wishes),     cmocka_unit_test(test_all_policies),
		cmocka_unit_test(test_bad_wishes), cmocka_unit_test(test_containers),
		cmocka_unit_test(test_terms),      cmocka_unit_test(test_sources),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
