#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "scheduler/bind/bind_annotations.h"

static struct decision decision = {
	.pod_namespace = (char *)"ns", .pod = (char *)"p", .uid = (char *)"u-1", .node = (char *)"n1"
};

static void check(char *body, const char *wanted)
{
	json_t *is = json_loads(body, 0, NULL), *should = json_loads(wanted, 0, NULL);
	assert_non_null(is);
	assert_non_null(should);
	if (!json_equal(is, should))
		fail_msg("is %s, should be %s", body, wanted);
	json_decref(is);
	json_decref(should);
	free(body);
}

static void test_bodies(void **state)
{
	check(bind_pod_patch(&decision, "GPU-a,NVIDIA,3000,30:;", 1790000000, "77"),
	      "{\"metadata\":{\"resourceVersion\":\"77\",\"labels\":{\"hami.io/vgpu-node\":\"n1\"},"
	      "\"annotations\":{\"hami.io/vgpu-node\":\"n1\",\"hami.io/vgpu-time\":\"1790000000\","
	      "\"hami.io/bind-time\":\"1790000000\",\"hami.io/bind-phase\":\"allocating\","
	      "\"hami.io/vgpu-devices-to-allocate\":\"GPU-a,NVIDIA,3000,30:;\","
	      "\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,3000,30:;\"}}}");
	check(bind_failed_patch("78"), "{\"metadata\":{\"resourceVersion\":\"78\",\"annotations\":"
				       "{\"hami.io/bind-phase\":\"failed\"}}}");
	check(bind_body(&decision, "78"),
	      "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p\","
	      "\"namespace\":\"ns\",\"uid\":\"u-1\",\"resourceVersion\":\"78\"},"
	      "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\"}}");
}

/* What was placed by use says so, beside what HAMi's readers see: no cores. */
static void test_borrowed(void **state)
{
	struct kube_share share = {
		.card = "GPU-a", .kind = "NVIDIA", .memory_mib = 3000, .borrowed_pct = 20
	};
	struct decision d = decision;
	d.shares = (struct kube_shares){ 1, 1, &share };
	char *body = bind_pod_patch(&d, "GPU-a,NVIDIA,3000,0:;", 1, "77");
	assert_non_null(strstr(body, "\"allot.dev/borrowed\":\"GPU-a,NVIDIA,3000,20:;\""));
	assert_non_null(strstr(body, "\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,3000,0:;\""));
	free(body);
}

/* A label's value has 63 bytes at most. */
static void test_label_of_a_long_name(void **state)
{
	char name[66] = { 0 };
	struct decision far = decision;
	far.node = name;
	for (size_t length = 63; length <= 64; length++) {
		memset(name, 'n', length);
		char *body = bind_pod_patch(&far, ";", 1, "1");
		assert_int_equal(strstr(body, "labels") != NULL, length == 63);
		free(body);
	}
}

static void test_which_pod(void **state)
{
	const struct kube_pod good = {
		.uid = "u-1", .name = "p", .pod_namespace = "ns", .node = "", .vgpu_node = ""
	};
	struct kube_pod pod = good;
	struct error err;
	assert_int_equal(bind_check_pod(&decision, &pod, &err), 0);
	pod.node = "n1";
	assert_int_equal(bind_check_pod(&decision, &pod, &err), 0);
	pod.node = "n2";
	assert_int_equal(bind_check_pod(&decision, &pod, &err), -ESTALE);
	assert_string_equal(err.text, "pod ns/p: is already bound to node n2, not to n1");
	pod = good;
	pod.uid = "u-2";
	assert_int_equal(bind_check_pod(&decision, &pod, &err), -ESTALE);
	assert_string_equal(err.text,
			    "pod ns/p: was deleted and created again: its uid is u-2, not u-1");
	pod = good;
	pod.is_terminating = true;
	assert_int_equal(bind_check_pod(&decision, &pod, &err), -ESTALE);
	pod = good;
	pod.phase = POD_ENDED;
	assert_int_equal(bind_check_pod(&decision, &pod, &err), -ESTALE);
}

static void test_what_a_pod_says(void **state)
{
	struct kube_pod pod = { .vgpu_node = "n1", .allocated = "GPU-a,NVIDIA,1,2:;" };
	assert_true(bind_is_annotated(&decision, "GPU-a,NVIDIA,1,2:;", &pod));
	assert_false(bind_is_annotated(&decision, "GPU-b,NVIDIA,1,2:;", &pod));
	pod.vgpu_node = "n2";
	assert_false(bind_is_annotated(&decision, "GPU-a,NVIDIA,1,2:;", &pod));
	pod = (struct kube_pod){ .vgpu_node = "n1" };
	assert_false(bind_is_annotated(&decision, "GPU-a,NVIDIA,1,2:;", &pod));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_borrowed),
		cmocka_unit_test(test_label_of_a_long_name),
		cmocka_unit_test(test_which_pod),
		cmocka_unit_test(test_what_a_pod_says),
	};
	return cmocka_run_group_tests_name("scheduler/bind_annotations", tests, NULL, NULL);
}
