/* What Prometheus is told of the cluster: HAMi's names, labels and units. */
#include "../cluster.h"
#include "scheduler/service/metrics_cluster.h"

static char *page_of(const struct model *m)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	metrics_write_model(out, m);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* The line stands in the page, alone. */
static void has_line(const char *page, const char *line)
{
	char whole[512];
	snprintf(whole, sizeof(whole), "\n%s\n", line);
	const char *found = strstr(page, whole);
	if (!found || strstr(found + 1, whole))
		fail_msg("%s: %s\n%s", line, found ? "twice" : "missing", page);
}

#define CARD(n) "{zone=\"vGPU\",node=\"a\",device_uuid=\"a-" n "\",device_index=\"" n "\""

static void test_cards_and_shares(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("p", GPU);
	give_node(m, node_object("a", 2, 8192, 100));
	allocate(pod, "a", "a-0,NVIDIA,2048,30:;", "success", true);
	give_pod(m, pod);
	give_pod(m, pod_object("w", GPU));
	char *page = page_of(m);
	const char *type = card_of(m, "a-0").type;
	char line[256];
	has_line(page, "allot_scheduler_nodes 1");
	has_line(page, "allot_scheduler_cards 2");
	has_line(page, "allot_scheduler_pods 1");
	has_line(page, "allot_scheduler_pods_waiting 1");
	has_line(page, "hami_node_gpu_memory_allocated_ratio" CARD("0") "} 0.25");
	has_line(page, "hami_node_gpu_memory_allocated_ratio" CARD("1") "} 0");
	snprintf(line, sizeof(line),
		 "hami_gpu_memory_allocated_bytes" CARD(
			 "0") ",device_cores=\"30\",device_type=\"%s\"} 2147483648",
		 type);
	has_line(page, line);
	snprintf(line, sizeof(line),
		 "hami_gpu_memory_limit_bytes" CARD("1") ",device_type=\"%s\"} 8589934592", type);
	has_line(page, line);
	snprintf(line, sizeof(line),
		 "hami_gpu_core_allocated_ratio" CARD("0") ",device_type=\"%s\"} 30", type);
	has_line(page, line);
	snprintf(line, sizeof(line), "hami_gpu_shared_count" CARD("0") ",device_type=\"%s\"} 1",
		 type);
	has_line(page, line);
	snprintf(line, sizeof(line),
		 "hami_node_gpu_overview" CARD("0") ",device_cores=\"30\",device_memory_limit=\"8192\","
						    "device_type=\"%s\"} 2147483648",
		 type);
	has_line(page, line);
	has_line(page, "hami_vgpu_memory_allocated_bytes{zone=\"vGPU\",namespace=\"ns\",node=\"a\","
		       "pod=\"p\","
		       "container_index=\"0\",device_uuid=\"a-0\"} 2147483648");
	has_line(page, "hami_vgpu_core_allocated_ratio{zone=\"vGPU\",namespace=\"ns\",node=\"a\","
		       "pod=\"p\","
		       "container_index=\"0\",device_uuid=\"a-0\"} 30");
	free(page);
	model_free(m);
}

static void test_quotas(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("p", GPU), *other = pod_object("o", GPU);
	allocate(pod, "a", "a-0,NVIDIA,2048,30:;", "success", true);
	give_pod(m, pod);
	allocate(other, "a", "a-0,NVIDIA,100,0:;", "success", true);
	json_object_set_new(json_object_get(other, "metadata"), "namespace", json_string("other"));
	give_pod(m, other);
	give_quota(m, "q", "\"limits.nvidia.com/gpumem\":\"20000\"");
	char *page = page_of(m);
#define OF(namespace, name) \
	"{zone=\"vGPU\",namespace=\"" namespace "\",quota_name=\"nvidia.com/" name "\""
	has_line(page, "hami_resource_quota_used" OF("ns", "gpumem") ",limit=\"20000\"} 2048");
	has_line(page, "hami_resource_quota_used" OF("ns", "gpucores") ",limit=\"0\"} 30");
	has_line(page, "hami_resource_quota_used" OF("ns", "gpu") ",limit=\"0\"} 1");
	has_line(page, "hami_resource_quota_used" OF("other", "gpumem") ",limit=\"0\"} 100");
	has_line(page, "hami_resource_quota_limit" OF("ns", "gpumem") "} 20000");
	assert_null(strstr(page, "hami_resource_quota_limit" OF("ns", "gpu") "}"));
	assert_null(strstr(page, "hami_resource_quota_limit" OF("other", "gpumem")));
	assert_null(strstr(page, "hami_resource_quota_used" OF("other", "gpucores")));
	free(page);
	model_free(m);
}

/* A node says of its cards what it likes: a quote ends no label. */
static void test_odd_words(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m,
		  node_saying("n",
			      "[{\"id\":\"a\\\"b\\\\c\",\"index\":0,\"count\":10,\"devmem\":1024,"
			      "\"devcore\":100,"
			      "\"type\":\"x\\ny\",\"numa\":0,\"mode\":\"hami-core\",\"health\":true}]",
			      NULL));
	char *page = page_of(m);
	has_line(page,
		 "hami_gpu_core_limit_ratio{zone=\"vGPU\",node=\"n\",device_uuid=\"a\\\"b\\\\c\","
		 "device_index=\"0\",device_type=\"x\\ny\"} 100");
	free(page);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cards_and_shares),
		cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_odd_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
