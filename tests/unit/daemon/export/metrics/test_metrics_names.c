/* The setting metrics_names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/export/metrics/metric.h"
#include "daemon/export/metrics/metrics_names.h"

static void test_words(void **state)
{
	static const char *const bad[] = {
		"", "hami,", ",hami", "hami,hami", "Hami", "none,hami", "hami gpu-manager", "gpu"
	};
	unsigned names = 9;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (metrics_names_parse(bad[i], &names, NULL) != -22)
			fail_msg("'%s'", bad[i]);
	assert_int_equal(names, 9);
	assert_int_equal(metrics_names_parse("none", &names, NULL), 0);
	assert_int_equal(names, 0);
	assert_int_equal(metrics_names_parse("gpu-manager,hami", &names, NULL), 0);
	assert_int_equal(names, METRICS_NAMES_HAMI | METRICS_NAMES_GPU_MANAGER);
	assert_int_equal(metrics_names_parse("gpu-manager", &names, NULL), 0);
	assert_int_equal(names, METRICS_NAMES_GPU_MANAGER);
}

/* Dashboards use exactly these names. */
static void test_hamis_rows(void **state)
{
	static const char *const wanted[] = {
		"hami_host_gpu_memory_used_bytes",
		"hami_host_gpu_utilization_ratio",
		"hami_vgpu_memory_used_bytes",
		"hami_vgpu_memory_limit_bytes",
		"hami_vgpu_memory_context_bytes",
		"hami_vgpu_memory_module_bytes",
		"hami_vgpu_memory_buffer_bytes",
		"hami_container_device_memory_bytes",
		"hami_container_device_utilization_ratio",
		"hami_container_last_kernel_elapsed_seconds",
	};
	assert_int_equal(metrics_row_count_hami, sizeof(wanted) / sizeof(wanted[0]));
	for (size_t i = 0; i < metrics_row_count_hami; i++)
		assert_string_equal(metrics_rows_hami[i].name, wanted[i]);
}

/* A pod on two cards, with quotation marks in its name. */
static void test_pods(void **state)
{
	static struct metrics_tenant_device device[2];
	struct metrics_tenant tenant = { .labels = "tenant=\"t\"",
					 .namespace = "n",
					 .pod = "p\"q",
					 .container = "c",
					 .device_count = 2 };
	struct metrics_figures f = { .daemon = { .host = "h" },
				     .tenant_count = 1,
				     .tenant = &tenant,
				     .tenant_device_count = 2,
				     .tenant_device = device };
	char *text;
	size_t length;
	device[0] = (struct metrics_tenant_device){ .index = "3",
						    .usage.used_bytes = 1 << 20,
						    .lessee.got_1s_pct = 12.5 };
	device[1] = (struct metrics_tenant_device){ .index = "5",
						    .usage.used_bytes = 5 << 19,
						    .lessee.got_1s_pct = 25 };
	assert_int_equal(metrics_write_sets(&(struct metric_set){ metrics_rows_gpu_manager, 2 }, 1,
					    &f, &text, &length),
			 0);
#define POD "{pod_name=\"p\\\"q\",namespace=\"n\",node=\"h\",container_name=\"c\",gpu"
	assert_non_null(strstr(text, "\ncontainer_gpu_utilization" POD "=\"gpu3\"} 12.5\n"));
	assert_non_null(strstr(text, "\ncontainer_gpu_utilization" POD "=\"total\"} 37.5\n"));
	assert_non_null(strstr(text, "\ncontainer_gpu_memory_total" POD "_memory=\"gpu5\"} 2.5\n"));
	assert_non_null(strstr(text, "\ncontainer_gpu_memory_total" POD "_memory=\"total\"} 3.5\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_hamis_rows),
		cmocka_unit_test(test_pods),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
