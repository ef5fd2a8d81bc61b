#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/hami/pod.h"

static const char recorded[] =
	"{\"metadata\":{\"name\":\"train-0\",\"namespace\":\"team-a\",\"uid\":\"4f1\","
	"\"resourceVersion\":\"812\","
	"\"labels\":{\"hami.io/vgpu-node\":\"n1\"},\"annotations\":{\"hami.io/"
	"bind-phase\":\"allocating\","
	"\"hami.io/bind-time\":\"1787306400\",\"hami.io/vgpu-node\":\"n1\",\"hami.io/"
	"vgpu-time\":\"1787306399\","
	"\"hami.io/vgpu-devices-to-allocate\":\";GPU-a,NVIDIA,3000,30:;\","
	"\"hami.io/vgpu-devices-allocated\":\";GPU-a,NVIDIA,3000,30:;\",\"own\":\"x\"}},"
	"\"spec\":{\"nodeName\":\"n1\",\"initContainers\":[{\"name\":\"fetch\"}],"
	"\"containers\":[{\"name\":\"main\"},{\"name\":\"log\"}]},\"status\":{\"phase\":"
	"\"Pending\"}}";

static struct kube_pod *read_text(const char *text, struct error *err)
{
	json_auto_t *object = json_loads(text, 0, NULL);
	struct kube_pod *pod = NULL;
	assert_non_null(object);
	return pod_read(object, &pod, err) < 0 ? NULL : pod;
}

static void test_recorded(void **state)
{
	struct kube_pod *pod = read_text(recorded, NULL);
	int64_t s;
	assert_non_null(pod);
	assert_string_equal(pod->uid, "4f1");
	assert_string_equal(pod->name, "train-0");
	assert_string_equal(pod->pod_namespace, "team-a");
	assert_string_equal(pod->version, "812");
	assert_string_equal(pod_node(pod), "n1");
	assert_int_equal(pod->phase, POD_PENDING);
	assert_int_equal(pod->bind_phase, BIND_ALLOCATING);
	assert_false(pod->is_terminating);
	assert_int_equal(pod->init_containers, 1);
	assert_int_equal(pod->containers, 3);
	assert_string_equal(pod->container[0], "fetch");
	assert_string_equal(pod->container[2], "log");
	assert_string_equal(pod->to_allocate, ";GPU-a,NVIDIA,3000,30:;");
	assert_string_equal(pod_annotation(pod, "own"), "x");
	assert_null(pod_annotation(pod, "none"));
	assert_int_equal(pod_bind_time(pod, &s, NULL), 0);
	assert_int_equal(s, 1787306400);
	pod_free(pod);
}

static void test_bare(void **state)
{
	struct error err;
	int64_t s;
	struct kube_pod *pod = read_text(
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
		"\"resourceVersion\":\"1\",\"deletionTimestamp\":\"x\"},"
		"\"status\":{\"phase\":\"Succeeded\"}}",
		NULL);
	assert_non_null(pod);
	assert_true(pod->is_terminating);
	assert_int_equal(pod->phase, POD_ENDED);
	assert_int_equal(pod->bind_phase, BIND_NONE);
	assert_int_equal(pod->containers, 0);
	assert_string_equal(pod_node(pod), "");
	assert_null(pod->to_allocate);
	assert_int_equal(pod_bind_time(pod, &s, &err), -61);
	pod_free(pod);
}

static void test_bad(void **state)
{
	struct error err;
	assert_null(read_text("{}", &err));
	assert_non_null(strstr(err.text, "pod without a name: metadata: must have"));
	assert_null(read_text("{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":7,"
			      "\"resourceVersion\":\"1\"}}",
			      &err));
	assert_non_null(strstr(err.text, "pod a: metadata: must have"));
	assert_null(read_text(
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
		"\"resourceVersion\":\"1\"},\"spec\":{\"containers\":[{\"name\":\"x\"},7]}}",
		&err));
	assert_string_equal(err.text, "pod b/a: spec.containers[1].name: missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_recorded),
					    cmocka_unit_test(test_bare),
					    cmocka_unit_test(test_bad) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
