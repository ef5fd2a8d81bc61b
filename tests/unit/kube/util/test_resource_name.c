/* What a resource may be called. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/util/resource_name.h"

static void test_good(void **state)
{
	const char *const names[] = { "nvidia.com/gpu", "a/b", "a-b.c1.example/Gpu_0.x-y",
				      "notkubernetes.io/x", "tencent.com/vcuda-core" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(resource_name_check(names[i], NULL), 0);
}

static void test_bad(void **state)
{
	char longest[300] = "a/";
	const char *const names[] = { "",       "gpu",        "/gpu",        "a/",
				      "a/b/c",  "A.com/gpu",  "-a.com/gpu",  "a-.com/gpu",
				      "a..b/c", "a.com/-gpu", "a.com/gpu-",  "a.com/g pu",
				      ".a/b",   "a./b",       "a_b.com/gpu", "a.com/g\n",
				      longest };
	memset(longest + 2, 'x', 64);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct error err = { 0 };
		assert_int_equal(resource_name_check(names[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, "as nvidia.com/gpu"));
	}
	const char *const reserved[] = { "kubernetes.io/gpu", "x.kubernetes.io/gpu" };
	for (size_t i = 0; i < 2; i++) {
		struct error err = { 0 };
		assert_int_equal(resource_name_check(reserved[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, "another domain"));
		assert_non_null(strstr(err.text, reserved[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_good),
					    cmocka_unit_test(test_bad) };
	return cmocka_run_group_tests_name("resource names", tests, NULL, NULL);
}
