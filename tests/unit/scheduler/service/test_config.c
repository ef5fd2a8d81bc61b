#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/service/config.h"

static void test_every_default_is_taken(void **state)
{
	struct config config = { 0 };
	struct error err = { 0 };
	for (size_t i = 0; i < config_table.count; i++) {
		const struct settings_row *row = &config_table.row[i];
		if (settings_set(&config_table, &config, row->name, row->default_text, &err) < 0)
			fail_msg("%s", err.text);
		assert_non_null(row->help);
	}
	assert_int_equal(config_table.check[0](&config, &err), 0);
}

static int check(struct error *err, const char *const (*pairs)[2])
{
	struct config config;
	settings_default(&config_table, &config);
	for (; (*pairs)[0]; pairs++)
		if (settings_set(&config_table, &config, (*pairs)[0], (*pairs)[1], err) < 0)
			fail_msg("%s", err->text);
	return config_table.check[0](&config, err);
}

static void test_what_no_line_shows(void **state)
{
	struct error err = { 0 };
	assert_int_equal(check(&err, (const char *const[][2]){ { "https_listen", "0.0.0.0:1" },
							       { "tls_certificate", "/c" },
							       { "tls_key", "/k" },
							       { 0 } }),
			 0);
	assert_int_equal(check(&err,
			       (const char *const[][2]){ { "https_listen", "0.0.0.0:1" }, { 0 } }),
			 -EINVAL);
	assert_non_null(strstr(err.text, "--issue DIR"));
	assert_int_equal(check(&err, (const char *const[][2]){ { "http_listen", "[::]:1" }, { 0 } }),
			 -EACCES);
	assert_int_equal(check(&err, (const char *const[][2]){ { "http_listen", "[::]:1" },
							       { "http_open", "on" },
							       { 0 } }),
			 0);
	assert_int_equal(check(&err, (const char *const[][2]){ { "vcuda_core_resource", "a.b/c" },
							       { "cores_resource", "a.b/c" },
							       { 0 } }),
			 -EINVAL);
	assert_non_null(strstr(err.text, "'a.b/c': is already the value of cores_resource"));
	assert_int_equal(check(&err, (const char *const[][2]){ { "client_ca", "/ca" }, { 0 } }),
			 -EINVAL);
	assert_non_null(strstr(
		err.text,
		"client_ca: '/ca': needs https_listen, since client certificates work only with TLS"));
	assert_int_equal(check(&err, (const char *const[][2]){ { "client_names", "a" }, { 0 } }),
			 -EINVAL);
	assert_string_equal(
		err.text,
		"client_names: 'a': needs client_ca, since the names are those in client certificates");
	assert_int_equal(check(&err, (const char *const[][2]){ { "client_local", "on" },
							       { "http_open", "on" },
							       { 0 } }),
			 -EINVAL);
	assert_non_null(strstr(err.text, "http_open"));
	assert_int_equal(check(&err, (const char *const[][2]){ { "gang_limit", "11s" }, { 0 } }),
			 -EINVAL);
	assert_string_equal(err.text, "gang_limit: 11 s: must be at least gang_wait, 12 s");
}

/* What the webhook writes, and what the scheduler reads, is of the same names. */
static void test_terms_agree(void **state)
{
	struct config config;
	settings_default(&config_table, &config);
	assert_int_equal(settings_set(&config_table, &config, "memory_resource", "a.b/mem", NULL),
			 0);
	assert_int_equal(settings_set(&config_table, &config, "default_memory", "3GiB", NULL), 0);
	assert_int_equal(settings_set(&config_table, &config, "guard_mounts", "deny", NULL), 0);
	assert_int_equal(settings_set(&config_table, &config, "node_policy", "spread", NULL), 0);
	struct webhook_terms webhook = config_webhook_terms(&config);
	struct request_terms request = config_request_terms(&config);
	assert_string_equal(webhook.memory, "a.b/mem");
	assert_ptr_equal(webhook.memory, request.memory);
	assert_ptr_equal(webhook.gpu, request.count);
	assert_ptr_equal(webhook.memory_pct, request.memory_pct);
	assert_ptr_equal(webhook.cores, request.cores);
	assert_ptr_equal(webhook.vcuda_cores, request.vcuda.cores);
	assert_ptr_equal(webhook.vcuda_memory, request.vcuda.memory);
	assert_int_equal(webhook.default_gpus, request.default_count);
	assert_int_equal(webhook.default_memory_bytes, UINT64_C(3) << 30);
	assert_int_equal(request.default_memory_mib, 3072);
	assert_int_equal(webhook.mounts, GUARD_DENY);
	assert_int_equal(webhook.privileged, GUARD_DENY);
	assert_int_equal(webhook.environment, GUARD_ALLOW);
	assert_string_equal(request.node_policy, "spread");
	assert_string_equal(request.gpu_policy, "spread");
}

static void test_policies_and_leases(void **state)
{
	static const char *const bad[][2] = {
		{ "gpu_policy", "nearest" }, { "gpu_policy", "binpack;spread" },
		{ "node_policy", "numa" },   { "lease", "allot" },
		{ "lease", "/a" },           { "lease", "a/" },
		{ "lease", "a/b/c" },        { "lease", "A/b" }
	};
	struct config config;
	char in[CONFIG_NAME_MAX], name[CONFIG_NAME_MAX];
	settings_default(&config_table, &config);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (settings_set(&config_table, &config, bad[i][0], bad[i][1], NULL) >= 0)
			fail_msg("%s = %s", bad[i][0], bad[i][1]);
	assert_int_equal(settings_set(&config_table, &config, "gpu_policy",
				      "topology-aware,numa,mutex", NULL),
			 0);
	assert_int_equal(settings_set(&config_table, &config, "node_policy", "fragmentation", NULL),
			 0);
	assert_int_equal(
		settings_set(&config_table, &config, "gpu_policy", "fragmentation,numa", NULL), 0);
	assert_string_equal(config_request_terms(&config).node_policy, "fragmentation");
	assert_true(config_lease(config.lease, in, name));
	assert_string_equal(in, "kube-system");
	assert_string_equal(name, "allot-scheduler");
	assert_int_equal(settings_set(&config_table, &config, "lease", "none", NULL), 0);
	assert_false(config_lease(config.lease, in, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_default_is_taken),
		cmocka_unit_test(test_what_no_line_shows),
		cmocka_unit_test(test_terms_agree),
		cmocka_unit_test(test_policies_and_leases),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
