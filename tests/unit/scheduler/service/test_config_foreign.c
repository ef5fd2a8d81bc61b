/* What HAMi's scheduler is started with is understood, or refused with its reason: no flag of it is nobody's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "scheduler/service/config.h"
#include "scheduler/service/config_foreign.h"

/*
 * Every flag that v2.10.0 has, with its default, in the order of its source (cmd/scheduler/main.go, pkg/device/.., klog
 * v2.140.0); behind those what v2.8.0 had besides, what was added since, and names of its configuration of devices.
 * `is_taken`: the default is.
 */
static const struct {
	const char *name, *value;
	bool is_taken;
} flags[] = {
	{ "http_bind", "127.0.0.1:8080", true },
	{ "cert_file", "/tls/tls.crt", true },
	{ "key_file", "/tls/tls.key", true },
	{ "scheduler-name", "", true },
	{ "node-scheduler-policy", "binpack", true },
	{ "gpu-scheduler-policy", "spread", true },
	{ "metrics-bind-address", ":9395", false },
	{ "node-label-selector", "", true },
	{ "kube-qps", "5", false },
	{ "kube-burst", "10", false },
	{ "kube-timeout", "30", false },
	{ "profiling", "false", true },
	{ "node-lock-timeout", "5m0s", true },
	{ "node-lock-retry-timeout", "28s", true },
	{ "force-overwrite-default-scheduler", "true", true },
	{ "leader-elect", "false", true },
	{ "leader-elect-resource-name", "", true },
	{ "leader-elect-resource-namespace", "", true },
	{ "legacy-metrics", "false", true },
	{ "enable-ascend", "false", true },
	{ "cambricon-mlu-name", "cambricon.com/mlu", false },
	{ "cambricon-mlu-memory", "cambricon.com/mlu.smlu.vmemory", false },
	{ "cambricon-mlu-cores", "cambricon.com/mlu.smlu.vcore", false },
	{ "dcu-name", "hygon.com/dcunum", false },
	{ "dcu-memory", "hygon.com/dcumem", false },
	{ "dcu-cores", "hygon.com/dcucores", false },
	{ "enable-iluvatar", "false", true },
	{ "mthreads-name", "mthreads.com/vgpu", false },
	{ "mthreads-memory", "mthreads.com/sgpu-memory", false },
	{ "mthreads-cores", "mthreads.com/sgpu-core", false },
	{ "enflame-gcu-resource-name", "enflame.com/gcu", false },
	{ "enflame-drs-gcu-resource-name", "enflame.com/drs-gcu", false },
	{ "enflame-gcu-memory-resource-name", "enflame.com/gcu-memory", false },
	{ "enflame-gcu-core-resource-name", "enflame.com/gcu-core", false },
	{ "enflame-vgcu-resource-name", "enflame.com/drs-gcu", false },
	{ "enflame-vgcu-legacy-resource-name", "enflame.com/vgcu", false },
	{ "enflame-vgcu-percentage-resource-name", "enflame.com/vgcu-percentage", false },
	{ "metax-name", "metax-tech.com/gpu", false },
	{ "metax-vcount", "metax-tech.com/sgpu", false },
	{ "metax-vcore", "metax-tech.com/vcore", false },
	{ "metax-vmemory", "metax-tech.com/vmemory", false },
	{ "sgpu-topology-aware", "false", true },
	{ "kunlun-name", "kunlunxin.com/xpu", false },
	{ "kunlun-vcount", "kunlunxin.com/vxpu", false },
	{ "kunlun-vmemory", "kunlunxin.com/vxpu-memory", false },
	{ "debug", "false", true },
	{ "device-config-file", "/device-config.yaml", false },
	{ "log_dir", "", true },
	{ "log_file", "", true },
	{ "log_file_max_size", "1800", false },
	{ "logtostderr", "true", true },
	{ "alsologtostderr", "false", true },
	{ "legacy_stderr_threshold_behavior", "true", true },
	{ "v", "0", true },
	{ "add_dir_header", "false", true },
	{ "skip_headers", "false", true },
	{ "one_output", "false", true },
	{ "skip_log_headers", "false", true },
	{ "stderrthreshold", "2", false },
	{ "alsologtostderrthreshold", "0", false },
	{ "vmodule", "", true },
	{ "log_backtrace_at", ":0", false },
	/* v2.8.0 */
	{ "default-mem", "0", true },
	{ "default-cores", "0", true },
	{ "default-gpu", "1", true },
	/* since */
	{ "device-plugin-namespace", "kube-system", false },
	{ "device-plugin-service-account", "hami-device-plugin", false },
	/* devices */
	{ "resourceCountName", "nvidia.com/gpu", true },
	{ "resourceMemoryName", "nvidia.com/gpumem", true },
	{ "resourceMemoryPercentageName", "nvidia.com/gpumem-percentage", true },
	{ "resourceCoreName", "nvidia.com/gpucores", true },
	{ "resourcePriorityName", "nvidia.com/priority", true },
	{ "overwriteEnv", "false", true },
	{ "defaultMemory", "0", true },
	{ "defaultCores", "0", true },
	{ "defaultGPUNum", "1", true },
	/* before those were in a file */
	{ "resource-name", "nvidia.com/gpu", true },
	{ "resource-mem", "nvidia.com/gpumem", true },
	{ "resource-mem-percentage", "nvidia.com/gpumem-percentage", true },
	{ "resource-cores", "nvidia.com/gpucores", true },
	{ "resource-priority", "nvidia.com/priority", true },
};
#define COUNT (sizeof(flags) / sizeof(flags[0]))

static void test_every_flag_has_its_row(void **state)
{
	struct config config;
	for (size_t i = 0; i < COUNT; i++) {
		struct error err = { 0 };
		settings_default(&config_table, &config);
		int r = settings_set(&config_table, &config, flags[i].name, flags[i].value, &err);
		if (r == -ENOENT || (r == 0) != flags[i].is_taken)
			fail_msg("%s: %d: %s", flags[i].name, r, err.text);
		/* A reason, not a name alone. */
		if (r < 0)
			assert_true(strlen(err.text) > strlen(flags[i].name) + 20);
	}
}

static void test_every_row_is_a_flag(void **state)
{
	for (const struct settings_alias *alias = config_aliases; alias->name; alias++) {
		const char *name = alias->name;
		size_t at = 0;
		while (at < COUNT && strcmp(flags[at].name, name) != 0)
			at++;
		if (at == COUNT)
			fail_msg("%s: no flag of HAMi's", name);
		assert_int_equal(alias->is_switch, !strcmp(flags[at].value, "true") ||
							   !strcmp(flags[at].value, "false"));
		/* Ours go before theirs: a name can't be both. */
		for (size_t k = 0; k < config_table.count; k++)
			assert_string_not_equal(config_table.row[k].name, name);
	}
}

static struct config config;

static void set(const char *key, const char *value)
{
	struct error err = { 0 };
	if (settings_set(&config_table, &config, key, value, &err) < 0)
		fail_msg("%s", err.text);
}

static void refuse(const char *key, const char *value, const char *part)
{
	struct error err = { 0 };
	struct config before = config;
	int r = settings_set(&config_table, &config, key, value, &err);
	if (r >= 0 || r == -ENOENT || !strstr(err.text, part))
		fail_msg("%s=%s: %d: %s", key, value, r, err.text);
	assert_memory_equal(&before, &config, sizeof(config));
}

static void test_what_they_mean(void **state)
{
	settings_default(&config_table, &config);
	set("http_bind", ":9443");
	assert_string_equal(config.https_listen, "0.0.0.0:9443");
	set("http-bind", "[::]:9444");
	assert_string_equal(config.https_listen, "[::]:9444");
	refuse("http_bind", "here", "http_bind: https_listen: 'here': must be");
	set("cert_file", "/tls/tls.crt");
	assert_string_equal(config.tls_certificate, "/tls/tls.crt");
	set("scheduler_name", "hami-scheduler");
	assert_string_equal(config.scheduler_name, "hami-scheduler");
	set("scheduler-name", "");
	assert_string_equal(config.scheduler_name, "hami-scheduler");
	set("gpu-scheduler-policy", "binpack,numa");
	assert_string_equal(config.gpu_policy, "binpack,numa");
	refuse("node-scheduler-policy", "best", "'best': must be binpack, spread or fragmentation");
	set("default-mem", "5000");
	assert_int_equal(config.default_memory_bytes, UINT64_C(5000) << 20);
	refuse("defaultMemory", "5Gi", "'5Gi': must be a whole number from 0 to");
	set("node-lock-timeout", "1m30s");
	assert_int_equal(config.lock_expiry_ns, 90 * NSEC_PER_SEC);
	set("node-lock-retry-timeout", "1500ms");
	assert_int_equal(config.bind_limit_ns, 1500 * NSEC_PER_MSEC);
	static const char *const wrong[] = { "", "5", "m", "5m0", "5d", "-5s", "5 s", "1.2.3s", ".s" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refuse("node-lock-timeout", wrong[i], "must be a duration such as 5m");
	refuse("node-lock-retry-timeout", "0", "bind_limit: '0ms': must be");
	set("v", "3");
	assert_string_equal(config_table.row[0].words[config.log_level], "info");
	set("v", "5");
	assert_string_equal(config_table.row[0].words[config.log_level], "debug");
}

static void test_what_is_done_anyway_can_not_be_otherwise(void **state)
{
	settings_default(&config_table, &config);
	refuse("force-overwrite-default-scheduler", "false", "must be true: pods that name no");
	refuse("legacy-metrics", "true", "must be false: ");
	refuse("enable-ascend", "true", "serves only NVIDIA GPUs");
	refuse("logtostderr", "maybe", "must be true: allot-scheduler logs");
	refuse("node-label-selector", "gpu=on", "uses every node that reports");
	refuse("kube-qps", "50", "Priority and Fairness");
}

/* In any order. */
static void test_the_lease(void **state)
{
	settings_default(&config_table, &config);
	set("leader-elect-resource-name", "hami-scheduler");
	set("leader-elect", "true");
	set("leader-elect-resource-namespace", "hami");
	assert_string_equal(config.lease, "hami/hami-scheduler");
	set("leader-elect", "false");
	assert_string_equal(config.lease, "none");
	set("leader-elect-resource-name", "hami-scheduler");
	assert_string_equal(config.lease, "none");
	settings_default(&config_table, &config);
	refuse("leader-elect-resource-name", "Wrong Name", "must be none or NAMESPACE/NAME");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_flag_has_its_row),
		cmocka_unit_test(test_every_row_is_a_flag),
		cmocka_unit_test(test_what_they_mean),
		cmocka_unit_test(test_what_is_done_anyway_can_not_be_otherwise),
		cmocka_unit_test(test_the_lease),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
