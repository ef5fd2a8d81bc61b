/* Keys of claims that are a pod's container's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/kubelet/devices/pod_key.h"

static const char *names[] = { "fetch", "proxy", "main" };
static const struct kube_pod pod = {
	.uid = "u-1", .container = names, .init_containers = 2, .containers = 3
};

static void test_both_ways(void **state)
{
	char key[TENANT_CLAIM_MAX];
	struct pod_key k;
	assert_int_equal(pod_key_make(&pod, 2, NULL, key, NULL), 0);
	assert_string_equal(key, "pod/u-1/main");
	assert_true(pod_key_parse(key, &k));
	assert_string_equal(k.uid, "u-1");
	assert_string_equal(k.container, "main");
	assert_null(k.device);
	assert_int_equal(pod_key_make(&pod, 2, "GPU-a-7", key, NULL), 0);
	assert_string_equal(key, "pod/u-1/main/GPU-a-7");
	assert_true(pod_key_parse(key, &k));
	assert_string_equal(k.container, "main");
	assert_string_equal(k.device, "GPU-a-7");
}

static void test_init_containers(void **state)
{
	char key[TENANT_CLAIM_MAX];
	struct pod_key k;
	struct kube_pod running = pod;
	running.object = json_pack("{s:{s:[{}, {s:s}]}}", "spec", "initContainers", "restartPolicy",
				   "Always");
	assert_non_null(running.object);
	assert_int_equal(pod_key_make(&running, 0, NULL, key, NULL), 0);
	assert_string_equal(key, "pod/u-1/fetch@0");
	assert_true(pod_key_parse(key, &k));
	assert_string_equal(k.container, "fetch");
	assert_int_equal(pod_key_make(&running, 1, "GPU-a-7", key, NULL), 0);
	assert_string_equal(key, "pod/u-1/proxy@1+/GPU-a-7");
	assert_true(pod_key_parse(key, &k));
	assert_string_equal(k.container, "proxy");
	assert_string_equal(k.device, "GPU-a-7");
	assert_true(pod_key_is_of(key, "u-1", "proxy"));
	json_decref(running.object);
}

static void test_which_pod_a_key_names(void **state)
{
	assert_true(pod_key_is_of("pod/u-1/main", "u-1", "main"));
	assert_true(pod_key_is_of("pod/u-1/main/GPU-a-7", "u-1", "main"));
	assert_false(pod_key_is_of("pod/u-1/mainly", "u-1", "main"));
	assert_false(pod_key_is_of("pod/u-2/main", "u-1", "main"));
	assert_false(pod_key_is_of("slices/u-1/main", "u-1", "main"));
	assert_false(pod_key_is_of("pod/u-1", "u-1", ""));
}

static void test_too_long(void **state)
{
	char uid[TENANT_CLAIM_MAX], key[TENANT_CLAIM_MAX];
	struct error err = { 0 };
	struct pod_key k;
	struct kube_pod long_named = pod;
	long_named.uid = uid;
	memset(uid, 'u', sizeof(uid) - 1);
	uid[sizeof(uid) - 1] = '\0';
	assert_int_equal(pod_key_make(&long_named, 2, NULL, key, &err), -EINVAL);
	assert_non_null(strstr(err.text, "too long"));
	uid[TENANT_CLAIM_MAX - 1 - strlen("pod//main")] = '\0';
	assert_int_equal(pod_key_make(&long_named, 2, NULL, key, NULL), 0);
	assert_true(pod_key_parse(key, &k) && !strcmp(k.uid, uid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_init_containers),
		cmocka_unit_test(test_which_pod_a_key_names),
		cmocka_unit_test(test_too_long),
	};
	return cmocka_run_group_tests_name("pod key", tests, NULL, NULL);
}
