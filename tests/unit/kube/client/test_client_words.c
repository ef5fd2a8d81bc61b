/* The pure parts of the client: how long to wait, and what a patch says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "kube/client/patch.h"
#include "kube/util/backoff.h"

static void test_backoff(void **state)
{
	struct backoff low = { 0 }, high = { 0 };
	uint64_t due_ns = 200 * NSEC_PER_MSEC;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(backoff_from_random_ns(&low, 0, 0), due_ns / 2);
		assert_int_equal(backoff_from_random_ns(&high, UINT32_MAX, 0), due_ns);
		due_ns = due_ns * 2 > BACKOFF_MAX_S * NSEC_PER_SEC ? BACKOFF_MAX_S * NSEC_PER_SEC
								   : due_ns * 2;
	}
	low.failures = 0;
	assert_int_equal(backoff_from_random_ns(&low, 0, 7 * NSEC_PER_SEC), 7 * NSEC_PER_SEC);
	assert_int_equal(backoff_from_random_ns(&low, 0, 1), 200 * NSEC_PER_MSEC);
}

static void test_patch(void **state)
{
	const struct patch_pair annotation[] = { { "a/b", "x\"y" }, { "c", NULL } };
	const struct patch_pair label[] = { { "gpu", "on" } };
	char *text = patch_metadata(annotation, 2, label, 1, "17");
	assert_string_equal(text, "{\"metadata\":{\"annotations\":{\"a/b\":\"x\\\"y\",\"c\":null},"
				  "\"labels\":{\"gpu\":\"on\"},\"resourceVersion\":\"17\"}}");
	free(text);
	text = patch_metadata(NULL, 0, NULL, 0, NULL);
	assert_string_equal(text, "{\"metadata\":{}}");
	free(text);
	const struct patch_pair broken = { "a", "\xff" };
	assert_null(patch_metadata(&broken, 1, NULL, 0, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_backoff),
					    cmocka_unit_test(test_patch) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
