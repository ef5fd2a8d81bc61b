#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/config/config.h"

static char said[4096];

static void complain(void *data, const char *text)
{
	strcat(said, text);
	strcat(said, "\n");
}

static unsigned parse_as(const struct settings_table *table, struct config *config, const char *text)
{
	said[0] = '\0';
	config_default(config);
	return settings_parse(table, config, "f", text, complain, NULL) +
	       settings_check_all(table, config, "f", complain, NULL);
}

static unsigned parse(struct config *config, const char *text)
{
	return parse_as(&config_settings, config, text);
}

static unsigned tune(struct config *config, const char *text)
{
	return parse_as(&config_tuning, config, text);
}

static void test_defaults(void **state)
{
	struct config c;
	config_default(&c);
	assert_int_equal(c.linger_ns, 1000000000);
	assert_int_equal(c.context_bytes, 518 << 20);
	assert_string_equal(c.nvml, "libnvidia-ml.so.1");
	assert_int_equal(c.arbiter.quantum_ns, arbiter_default_config().quantum_ns);
}

static void test_values(void **state)
{
	struct config c;
	assert_int_equal(parse(&c, "# a comment\n\n quantum=5ms # here too\r\n"
				   "log_level = debug\nnvml = /x/y.so"),
			 0);
	assert_int_equal(c.arbiter.quantum_ns, 5000000);
	assert_int_equal(c.arbiter.policy, ARBITER_POLICY_LEASE);
	assert_int_equal(log_level_of(c.log_level), LOG_LEVEL_DEBUG);
	assert_string_equal(c.nvml, "/x/y.so");
	assert_int_equal(parse(&c, "policy = feedback"), 0);
	assert_int_equal(c.arbiter.policy, ARBITER_POLICY_FEEDBACK);
	assert_int_equal(parse(&c, "elastic = on\nelastic_limit = 80%\n"), 0);
	assert_true(c.is_elastic && c.elastic.most_pct == 80);
	assert_int_equal(parse(&c, "elastic = off"), 0);
	assert_false(c.is_elastic);
	assert_false(c.refuse_overcommit);
	assert_false(c.is_arena_tenants);
	assert_int_equal(parse(&c, "swap_arena_charge = tenant"), 0);
	assert_true(c.is_arena_tenants);
	assert_int_equal(parse(&c, "overcommit_cores = refuse"), 0);
	assert_true(c.refuse_overcommit);
	assert_int_equal(parse(&c, "kube_plugin = on\nkube_slices = 100\nkube_slice_limit = hard\n"
				   "kube_resource = a.b/c\nkube_plugin_dir = /p\n"
				   "kube_pod_resources = none"),
			 0);
	assert_true(c.is_kube_plugin && c.is_kube_slice_hard && c.kube_slices == 100);
	assert_string_equal(c.kube_resource, "a.b/c");
}

static void test_tuning(void **state)
{
	struct config c;
	assert_int_equal(tune(&c, "feedback_control = p\nfeedback_sensor = nvml # a comment\n"
				  "token_window = 5s\ncontext_bytes = 300MiB"),
			 0);
	assert_int_equal(c.arbiter.feedback.control, FEEDBACK_P);
	assert_int_equal(c.arbiter.feedback_sensor, ARBITER_SENSOR_NVML);
	assert_int_equal(c.arbiter.token_window_ns, 5000000000);
	assert_int_equal(c.context_bytes, 300 << 20);
	assert_int_equal(tune(&c, "elastic_reserve = 0\nelastic_step = 2.5\n"
				  "elastic_period = 1s\nelastic_fade=3s"),
			 0);
	assert_true(c.elastic.reserve_pct == 0 && c.elastic.step_pct == 2.5);
	assert_int_equal(c.elastic.period_ns, 1000000000);
	assert_int_equal(c.elastic.fade_ns, 3000000000);
}

/* A name is in one table only; for a file of the other kind the error names the right file. */
static void test_tables_are_apart(void **state)
{
	struct config c;
	char line[64];
	for (size_t i = 0; i < config_tuning.count; i++) {
		snprintf(line, sizeof(line), "%s = 0\n", config_tuning.row[i].name);
		assert_int_equal(parse(&c, line), 1);
		assert_non_null(strstr(said, ": is no longer a setting: its value is "));
	}
	for (size_t i = 0; i < config_settings.count; i++) {
		snprintf(line, sizeof(line), "%s = 0\n", config_settings.row[i].name);
		assert_int_equal(tune(&c, line), 1);
		assert_non_null(strstr(said, ": is a setting, so --tuning can't set it: "));
	}
	assert_int_equal(tune(&c, "kubeconfig = /k\n"), 1);
	assert_non_null(strstr(said, "f:1: kubeconfig: no such tuning"));
	assert_int_equal(parse(&c, "elastic_reserve = 0\n"), 1);
	assert_string_equal(
		said,
		"f:1: elastic_reserve: is no longer a setting: its value is 10; remove it (developers can change it by allotd --tuning)\n");
}

static void test_no_time(void **state)
{
	static const char *const texts[] = { "0", "0s", "0ms", "0.0s" };
	struct config c;
	char line[64];
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(line, sizeof(line), "switch_cost = %s\n", texts[i]);
		assert_int_equal(tune(&c, line), 0);
		assert_int_equal(c.arbiter.switch_ns, 0);
	}
	assert_int_equal(parse(&c, "linger = 0s\n"), 1);
	assert_int_equal(tune(&c, "switch_cost = 0x\n"), 1);
}

struct bad_line {
	const char *line, *says;
};

static void check_bad_lines(const struct settings_table *table, const struct bad_line *rows,
			    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct config c, untouched;
		config_default(&untouched);
		/* Its padding too. */
		memcpy(&c, &untouched, sizeof(c));
		said[0] = '\0';
		assert_int_equal(settings_parse(table, &c, "f", rows[i].line, complain, NULL), 1);
		if (strncmp(said, rows[i].says, strlen(rows[i].says)) != 0)
			fail_msg("'%s' says '%s'", rows[i].line, said);
		assert_memory_equal(&c, &untouched, sizeof(c));
	}
}

static void test_bad_lines(void **state)
{
	static const struct bad_line rows[] = {
		{ "quantum = 5", "f:1: quantum: '5': must be from 100us to 1s" },
		{ "quantum = x", "f:1: quantum: 'x': " },
		{ "quantum =", "f:1: quantum: " },
		{ "quantum", "f:1: quantum: must be 'key = value'" },
		{ "= 5", "f:1: : no such setting" },
		{ "no_such = 1", "f:1: no_such: no such setting" },
		{ "log_level = loud",
		  "f:1: log_level: 'loud': must be error, warning, info or debug" },
		{ "elastic = yes", "f:1: elastic: 'yes': must be on or off" },
		{ "elastic_limit = 0", "f:1: elastic_limit: '0': " },
		{ "elastic_limit = 0.5", "f:1: elastic_limit: '0.5': must be from 1 to 100" },
		{ "elastic_limit = 101", "f:1: elastic_limit: '101': " },
		{ "policy = fair", "f:1: policy: 'fair': must be lease, feedback or token" },
		{ "sharing = auto", "f:1: sharing: 'auto': was removed; must be time or space" },
		{ "swap_arena_charge = me",
		  "f:1: swap_arena_charge: 'me': must be daemon or tenant" },
		{ "overcommit_cores = yes", "f:1: overcommit_cores: 'yes': must be warn or refuse" },
		{ "container_engines = docker",
		  "f:1: container_engines: 'docker': must be auto, none, or a comma-separated list such as docker:/" },
		{ "container_engines = podman:run/x",
		  "f:1: container_engines: 'run/x': must be an absolute path" },
		{ "state_dir = state", "f:1: state_dir: 'state': must be auto, or a full path" },
		{ "container_driver = mirror",
		  "f:1: container_driver: 'mirror': must be toolkit, or a full path" },
		{ "nvml =", "f:1: nvml: '': must be 1 to 255 bytes" },
		{ "kube_plugin = yes", "f:1: kube_plugin: 'yes': must be on or off" },
		{ "kube_slices = 0", "f:1: kube_slices: '0': " },
		{ "kube_slices = 101",
		  "f:1: kube_slices: '101': out of range; write a whole number from 1 to 100" },
		{ "kube_slices = 2.5", "f:1: kube_slices: '2.5': " },
		{ "kube_slice_limit = firm", "f:1: kube_slice_limit: 'firm': must be soft or hard" },
	};
	check_bad_lines(&config_settings, rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_bad_lines_of_tuning(void **state)
{
	static const struct bad_line rows[] = {
		{ "no_such = 1", "f:1: no_such: no such tuning (allotd --list-tuning lists all)" },
		{ "context_bytes = 1TiB",
		  "f:1: context_bytes: '1TiB': must be from 16MiB to 4096MiB" },
		{ "context_bytes = 600", "f:1: context_bytes: '600'" },
		{ "elastic_reserve = -1", "f:1: elastic_reserve: '-1': " },
		{ "elastic_step = nan", "f:1: elastic_step: 'nan': " },
		{ "elastic_period = 50ms", "f:1: elastic_period: '50ms': must be from 100ms to 1s" },
		{ "feedback_control = d", "f:1: feedback_control: 'd': must be p, pi or pid" },
		{ "feedback_sensor = x", "f:1: feedback_sensor: 'x': must be busy or nvml" },
		{ "feedback_p = x",
		  "f:1: feedback_p: 'x': not a number; write a number from 0 to 100" },
		{ "feedback_p = -1", "f:1: feedback_p: '-1': not a number" },
		{ "feedback_i = 1001",
		  "f:1: feedback_i: '1001': out of range; write a number from 0 to 1000" },
		{ "feedback_d = nan", "f:1: feedback_d: 'nan': not a number" },
		{ "feedback_smooth = 0", "f:1: feedback_smooth: '0': must be more than 0" },
		{ "feedback_period_min = 11s", "f:1: feedback_period_min: '11s': must be from 1ms" },
		{ "token_quota = 11s", "f:1: token_quota: '11s': must be from 1ms to 10s" },
	};
	check_bad_lines(&config_tuning, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Mistakes in settings that no single line has. */
static void test_kubelets_paths_and_names(void **state)
{
	static const char *const rows[][2] = {
		{ "kube_resource = gpu", "f: kube_resource: 'gpu': must be a domain and a name" },
		{ "kube_resource = x.kubernetes.io/gpu",
		  "f: kube_resource: 'x.kubernetes.io/gpu': " },
		{ "kube_plugin_dir = plugins", "f: kube_plugin_dir: 'plugins': must be a full path" },
		{ "kube_plugin_dir = "
		  "/0123456789012345678901234567890123456789012345678901234567890123"
		  "4567890123456789012345678901",
		  "f: kube_plugin_dir: '/0123456789" },
		{ "kube_pod_resources = pods", "f: kube_pod_resources: 'pods': must be a full path" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c;
		said[0] = '\0';
		assert_int_equal(parse(&c, rows[i][0]), 1);
		if (strncmp(said, rows[i][1], strlen(rows[i][1])) != 0)
			fail_msg("'%s' says '%s'", rows[i][0], said);
	}
}

/* Gains are the control's own until they are set, each by itself. */
static void test_gains(void **state)
{
	struct config c;
	struct feedback_gains g;
	assert_int_equal(tune(&c, "feedback_control = pid\nfeedback_smooth = 200ms"), 0);
	g = feedback_gains(&c.arbiter.feedback);
	assert_true(g.p == 1 && g.i_per_s == 5 && g.d_s == 0.02);
	assert_int_equal(tune(&c, "feedback_p = 2.5\nfeedback_i=0\nfeedback_d = 0.125"), 0);
	g = feedback_gains(&c.arbiter.feedback);
	assert_true(g.p == 2.5 && g.i_per_s == 0 && g.d_s == 0.125);
	assert_int_equal(tune(&c, "feedback_p = 2.5\nfeedback_p = auto\nfeedback_control = p"), 0);
	g = feedback_gains(&c.arbiter.feedback);
	assert_true(g.p == 4 && g.i_per_s == 0 && g.d_s == 0);
}

/* Tuning that contradicts each other, in whatever order the lines stand, or one against a default. */
static void test_order(void **state)
{
	struct config c;
	assert_int_equal(tune(&c, "feedback_period_min = 200ms\nfeedback_period_max = 200ms\n"), 0);
	assert_int_equal(tune(&c, "feedback_period_min = 200ms\nfeedback_period_max = 150ms\n"), 1);
	assert_string_equal(said, "f: feedback_period_min: '200ms': must be at most the value of "
				  "feedback_period_max, '150ms'\n");
	assert_int_equal(tune(&c, "drain_max = 5ms\n"), 1);
	assert_non_null(
		strstr(said, "f: drain_min: '10ms': must be at most the value of drain_max, '5ms'"));
}

static void test_all_bad_lines_are_reported(void **state)
{
	struct config c;
	assert_int_equal(parse(&c, "a = 1\nquantum = 7ms\nb = 2\n"), 2);
	assert_non_null(strstr(said, "f:1: a:"));
	assert_non_null(strstr(said, "f:3: b:"));
	assert_int_equal(c.arbiter.quantum_ns, 7000000);
}

static void test_long_line(void **state)
{
	struct config c;
	char text[3000];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(parse(&c, text), 1);
	assert_non_null(strstr(said, "f:1: line longer"));
}

static void test_files(void **state)
{
	struct config c;
	struct error err;
	char path[] = "/tmp/allot-config-XXXXXX";
	int fd = mkstemp(path);
	config_default(&c);
	assert_int_equal(settings_load(&config_settings, &c, path, complain, NULL, &err), 0);
	assert_int_equal(write(fd, "quantum\0= 5ms", 13), 13);
	assert_true(settings_load(&config_settings, &c, path, complain, NULL, &err) < 0);
	close(fd);
	unlink(path);
	assert_true(settings_load(&config_settings, &c, path, complain, NULL, &err) < 0);
	assert_non_null(strstr(err.text, path));
}

/* ---- others' names ---- */

static void test_names_of_others(void **state)
{
	struct config c;
	assert_int_equal(
		parse(&c, "driver = nvidia\nquery-port = 5678\nsample-period=2\n"
			  "docker_endpoint = unix:///var/run/docker.sock\nnode-labels = a=b,c=d\n"
			  "hostname-override = node-7\ndevice-plugin-path = /x/plugins\n"
			  "checkpoint-path = /x/state\nshare-mode = false\n"
			  "incluster-mode = true\nstandalone = false"),
		0);
	assert_string_equal(c.metrics_listen, "127.0.0.1:5678");
	assert_int_equal(c.census_ns, 2000000000);
	assert_string_equal(c.container_engines, "docker:/var/run/docker.sock");
	assert_string_equal(c.kube_labels, "a=b,c=d");
	assert_string_equal(c.kube_node_name, "node-7");
	assert_string_equal(c.kube_plugin_dir, "/x/plugins");
	assert_string_equal(c.state_dir, "/x/state");
	assert_false(c.is_kube_share);
	assert_int_equal(config_split_count(&c), 1);
	assert_string_equal(c.kube_api, "in-cluster");
	assert_int_equal(parse(&c, "share_mode = true\nstandalone = true\nkubeconfig = /k\n"
				   "container-runtime-endpoint = /run/containerd/containerd.sock\n"
				   "sample_period = 500ms"),
			 0);
	assert_true(c.is_kube_share);
	assert_int_equal(config_split_count(&c), 10);
	assert_string_equal(c.kube_api, "/k");
	assert_string_equal(c.container_engines, "containerd:/run/containerd/containerd.sock");
	assert_int_equal(c.census_ns, 500000000);
	assert_int_equal(parse(&c, "deviceSplitCount = 7\ndeviceMemoryScaling = 1.5\n"
				   "deviceCoreScaling = 2\nresourceName = a.b/c\n"
				   "resourcePriorityName = a.b/rank\n"
				   "filterdevices = GPU-00000000-0000-0000-0000-000000000001"),
			 0);
	assert_int_equal(c.kube_split_count, 7);
	assert_true(c.kube_memory_scaling == 1.5 && c.kube_core_scaling == 2);
	assert_string_equal(c.kube_resource, "a.b/c");
	assert_string_equal(c.kube_priority_resource, "a.b/rank");
	assert_string_equal(c.cordon, "GPU-00000000-0000-0000-0000-000000000001");
}

/* Address and port may be in any order; an absent one keeps its value. */
static void test_where_metrics_are_asked_for(void **state)
{
	static const struct {
		const char *text, *listen;
	} rows[] = {
		{ "query-addr = localhost", "127.0.0.1:5678" },
		{ "query-addr = 127.0.0.2\nquery-port = 99", "127.0.0.2:99" },
		{ "query-port = 99\nquery-addr = 127.0.0.2", "127.0.0.2:99" },
		{ "query-addr = ::1\nquery-port = 7", "[::1]:7" },
		{ "metrics_listen = unix:/x/m.sock\nquery-port = 7", "127.0.0.1:7" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c;
		assert_int_equal(parse(&c, rows[i].text), 0);
		assert_string_equal(c.metrics_listen, rows[i].listen);
	}
}

static void test_names_of_others_refused(void **state)
{
	static const struct {
		const char *line, *why;
	} rows[] = {
		{ "driver = amd", "driver: 'amd': must be nvidia" },
		{ "volume-config = /x", "volume-config: '/x': allot has no such setting: no list" },
		{ "extra-config = /x",
		  "extra-config: '/x': allot has no such setting: a container gets the device nodes" },
		{ "virtual-manager-path = /x", "setting: sockets and state" },
		{ "allocation-check-period = 30s", "setting: allotd compares the kubelet's records" },
		{ "cgroup-driver = systemd", "setting: containers are found" },
		{ "query-port = 70000", "query-port: metrics_listen: " },
		{ "query-port = x", "query-port: 'x': must be a port" },
		{ "share-mode = maybe", "share-mode: 'maybe': must be true or false" },
		{ "sample-period = 0", "sample-period: census_interval: " },
		{ "container-runtime-endpoint = /run/x.sock", "which engine's socket this is" },
		{ "devicesplitcount = 7", "devicesplitcount: no such setting" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c;
		assert_int_equal(parse(&c, rows[i].line), 1);
		assert_non_null(strstr(said, rows[i].why));
		/* None of the settings in these rows is changed. */
		assert_string_equal(c.metrics_listen, "off");
		assert_string_equal(c.container_engines, "auto");
		assert_true(c.is_kube_share);
		assert_int_equal(c.census_ns, 1000000000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_tuning),
		cmocka_unit_test(test_tables_are_apart),
		cmocka_unit_test(test_no_time),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_bad_lines_of_tuning),
		cmocka_unit_test(test_all_bad_lines_are_reported),
		cmocka_unit_test(test_kubelets_paths_and_names),
		cmocka_unit_test(test_gains),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_names_of_others),
		cmocka_unit_test(test_where_metrics_are_asked_for),
		cmocka_unit_test(test_names_of_others_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
