#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/hami/priority.h"

static struct kube_pod *made(const char *first, const char *second)
{
	struct kube_pod *pod = NULL;
	json_auto_t *object = json_pack(
		"{s:{s:s,s:s,s:s,s:s},s:{s:[{s:s,s:{s:{s:s}}}],s:[{s:s,s:{s:{s:s,s:s}}},{s:s}]}}",
		"metadata", "name", "a", "namespace", "b", "uid", "c", "resourceVersion", "1",
		"spec", "initContainers", "name", "init", "resources", "limits",
		"nvidia.com/priority", first, "containers", "name", "main", "resources", "limits",
		"nvidia.com/priority", second, "nvidia.com/gpu", "1", "name", "log");
	assert_non_null(object);
	json_auto_t *essence = pod_copy_trimmed(object);
	assert_int_equal(pod_read(essence, &pod, NULL), 0);
	return pod;
}

static int read_of(const struct kube_pod *pod, size_t container, int *ret, struct error *err)
{
	return priority_read(pod, container, "nvidia.com/priority", ret, err);
}

static void test_each_container(void **state)
{
	struct kube_pod *pod = made("1", "0");
	int priority = -1;

	assert_int_equal(read_of(pod, 0, &priority, NULL), 0);
	assert_int_equal(priority, 0);
	assert_int_equal(read_of(pod, 1, &priority, NULL), 0);
	assert_int_equal(priority, KUBE_PRIORITY_HIGH);
	/* The one that says nothing, and one that is not there. */
	assert_int_equal(read_of(pod, 2, &priority, NULL), 0);
	assert_int_equal(priority, 0);
	assert_int_equal(read_of(pod, 3, &priority, NULL), 0);
	assert_int_equal(priority, 0);
	assert_string_equal(pod_limit(pod, 1, "nvidia.com/gpu"), "1");
	assert_null(pod_limit(pod, 0, "nvidia.com/gpu"));
	pod_free(pod);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"2", "-1", "", "high", "1k", "0.5", "99999999999999999999"
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct kube_pod *pod = made(texts[i], "0");
		struct error err = { 0 };
		int priority = -7;
		assert_true(read_of(pod, 0, &priority, &err) < 0);
		assert_int_equal(priority, -7);
		assert_non_null(strstr(err.text, "limits: nvidia.com/priority"));
		assert_non_null(strstr(err.text, texts[i]));
		pod_free(pod);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_container),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
