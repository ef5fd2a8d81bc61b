#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/config/config.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/kube/desired_metadata.h"

static struct kube_card card = { .id = "GPU-a",
				 .count = 10,
				 .memory_mib = 1000,
				 .cores_pct = 100,
				 .type = "NVIDIA X",
				 .mode = "hami-core",
				 .is_healthy = true };
static const struct kube_cards cards = { 1, &card };
static char id[1][KUBE_ID_MAX] = { "GPU-a" };
static int score[1];
static const struct kube_scores scores = { 1, id, score };

static void test_all_is_wanting(void **state)
{
	struct desired_metadata w;
	json_auto_t *metadata = json_object();
	assert_int_equal(desired_metadata_make(&cards, &scores, "gpu=on, rack=a3", &w, NULL), 0);
	const struct metadata_diff d = desired_metadata_diff(&w, metadata);
	assert_int_equal(d.annotations, 2);
	assert_string_equal(d.annotation[0].name, "hami.io/node-nvidia-register");
	assert_string_equal(d.annotation[1].value, "[{\"uuid\":\"GPU-a\",\"score\":{}}]");
	assert_int_equal(d.labels, 2);
	assert_string_equal(d.label[1].name, "rack");
	assert_string_equal(d.label[1].value, "a3");
	desired_metadata_free(&w);
}

static void test_only_what_differs(void **state)
{
	struct desired_metadata w;
	assert_int_equal(desired_metadata_make(&cards, NULL, "gpu=on,b=", &w, NULL), 0);
	json_auto_t *metadata = json_pack("{s:{s:s,s:s},s:{s:s,s:s}}", "annotations",
					  "hami.io/node-nvidia-register", w.cards, "other", "x",
					  "labels", "gpu", "off", "b", "");
	struct metadata_diff d = desired_metadata_diff(&w, metadata);
	assert_int_equal(d.annotations, 0);
	assert_int_equal(d.labels, 1);
	assert_string_equal(d.label[0].name, "gpu");
	json_object_set_new(json_object_get(metadata, "labels"), "gpu", json_string("on"));
	d = desired_metadata_diff(&w, metadata);
	assert_int_equal(d.annotations + d.labels, 0);
	desired_metadata_free(&w);
}

static void test_equal(void **state)
{
	struct desired_metadata a, b;
	assert_int_equal(desired_metadata_make(&cards, NULL, "gpu=on", &a, NULL), 0);
	assert_int_equal(desired_metadata_make(&cards, NULL, "gpu=on", &b, NULL), 0);
	assert_true(desired_metadata_equal(&a, &b));
	desired_metadata_free(&b);
	assert_int_equal(desired_metadata_make(&cards, NULL, "none", &b, NULL), 0);
	assert_int_equal(b.labels, 0);
	assert_false(desired_metadata_equal(&a, &b));
	desired_metadata_free(&b);
	assert_int_equal(desired_metadata_make(&cards, &scores, "gpu=on", &b, NULL), 0);
	assert_false(desired_metadata_equal(&a, &b));
	desired_metadata_free(&b);
	desired_metadata_free(&a);
}

static void test_labels(void **state)
{
	static const char *const good[] = { "none", "gpu=on", "a.b/c=d", "a=", "A_b.c-d=1,b=2" };
	static const char *const bad[] = {
		"gpu",
		"=on",
		"a=b=c",
		"-a=b",
		"a-=b",
		"a/=b",
		"/a=b",
		"a/b/c=d",
		"a=b,",
		"a=b c",
		"Ab/c=d",
		"a=b,b=b,c=b,d=b,e=b,f=b,g=b,h=b,i=b,j=b,k=b,l=b,m=b,n=b,o=b,p=b,q=b",
		"a=0123456789012345678901234567890123456789012345678901234567890123"
	};
	struct error err;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (desired_metadata_check_labels(good[i], &err) < 0)
			fail_msg("%s: %s", good[i], err.text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (desired_metadata_check_labels(bad[i], &err) != -22)
			fail_msg("%s", bad[i]);
}

static void test_settings(void **state)
{
	struct config config;
	struct error err;
	config_default(&config);
	assert_int_equal(node_kube_check(&config, &err), 0);
	assert_int_equal(settings_set(&config_settings, &config, "kube_api", "kubeconfig", &err), 0);
	assert_int_equal(node_kube_check(&config, &err), -22);
	assert_string_equal(err.text,
			    "kube_api: 'kubeconfig': must be off, in-cluster or a kubeconfig's "
			    "full path");
	assert_int_equal(settings_set(&config_settings, &config, "kube_api", "in-cluster", &err), 0);
	assert_int_equal(node_kube_check(&config, &err), 0);
	assert_int_equal(settings_set(&config_settings, &config, "kube_use_window", "5ms", &err), 0);
	assert_int_equal(node_kube_check(&config, &err), -22);
	assert_string_equal(err.text,
			    "kube_use_window: less than a second: must be 0s or 1s to 10m");
	assert_true(settings_set(&config_settings, &config, "kube_use_window", "11m", &err) < 0);
	assert_int_equal(settings_set(&config_settings, &config, "kube_use_window", "5m", &err), 0);
	assert_int_equal(settings_set(&config_settings, &config, "kube_labels", "gpu", &err), 0);
	assert_int_equal(node_kube_check(&config, &err), -22);
	assert_string_equal(err.text, "kube_labels: 'gpu': must be NAME=VALUE, such as gpu=on");
	assert_true(settings_set(&config_settings, &config, "kube_split_count", "0", &err) < 0);
	assert_true(settings_set(&config_settings, &config, "kube_memory_scaling", "0", &err) < 0);
	assert_int_equal(settings_set(&config_settings, &config, "kube_memory_scaling", "1.5", &err),
			 0);
	assert_true(config.kube_memory_scaling == 1.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_wanting), cmocka_unit_test(test_only_what_differs),
		cmocka_unit_test(test_equal),          cmocka_unit_test(test_labels),
		cmocka_unit_test(test_settings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
