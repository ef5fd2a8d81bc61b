/* A pod's need of a card, for containers that do not all run at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/state/pod_stage.h"

/* So much is needed beside `beside` (NULL: in all) of items that end with one without a key. */
struct one {
	const char *key;
	unsigned bytes;
};

static void expect(const struct one *ones, const char *beside, unsigned needed)
{
	struct stage_item items[8];
	size_t count = 0;
	uint64_t all = 0;
	for (; ones[count].key; count++) {
		items[count] = (struct stage_item){ pod_stage_of(ones[count].key),
						    { ones[count].bytes, 2 * ones[count].bytes,
						      ones[count].bytes / 10.0 } };
		all += ones[count].bytes;
	}
	struct pod_stage stage = pod_stage_of(beside ? beside : "");
	struct stage_amount off = pod_stage_unneeded(items, count, beside ? &stage : NULL);
	assert_int_equal(all - off.promised_bytes, needed);
	assert_int_equal(2 * all - off.granted_bytes, 2 * needed);
	assert_float_equal((double)all / 10 - off.cores_pct, needed / 10.0, 1e-6);
}

static void test_keys(void **state)
{
	struct pod_stage s = pod_stage_of("pod/u-1/fetch@12/GPU-a-3");
	assert_true(s.is_init && !s.is_sidecar && s.place == 12 && s.uid_length == 3);
	s = pod_stage_of("pod/u-1/proxy@1+");
	assert_true(!s.is_init && s.is_sidecar && s.place == 1);
	s = pod_stage_of("pod/u-1/main/GPU@2");
	assert_true(s.uid && !s.is_init && !s.is_sidecar);
	assert_null(pod_stage_of("cdi/fetch@0").uid);
	assert_null(pod_stage_of("pod/u-1").uid);
	assert_null(pod_stage_of("").uid);
}

static void test_the_most_of_any_stage(void **state)
{
	expect((struct one[]){ { "pod/a/i@0", 10 }, { "pod/a/j@1", 30 }, { "pod/a/main", 20 }, { 0 } },
	       NULL, 30);
	expect((struct one[]){ { "pod/a/i@0", 10 }, { "pod/a/main", 20 }, { "pod/a/log", 20 }, { 0 } },
	       NULL, 40);
	/* A sidecar runs beside later containers, and beside the others. */
	expect((struct one[]){ { "pod/a/i@0", 35 },
			       { "pod/a/side@1+", 10 },
			       { "pod/a/j@2", 30 },
			       { "pod/a/main", 5 },
			       { 0 } },
	       NULL, 40);
	/* Each pod by itself; tenants without a pod count in full. */
	expect((struct one[]){ { "pod/a/i@0", 10 },
			       { "pod/b/i@0", 7 },
			       { "cdi/x", 100 },
			       { "pod/a/main", 4 },
			       { "pod/b/main", 9 },
			       { 0 } },
	       NULL, 119);
}

static void test_beside_one_that_is_to_come(void **state)
{
	const struct one pod[] = { { "pod/a/i@0", 10 },   { "pod/a/side@1+", 3 },
				   { "pod/a/j@2", 30 },   { "pod/a/main", 20 },
				   { "pod/b/main", 100 }, { 0 } };
	expect(pod, "pod/a/log", 123);      /* the others and the sidecar */
	expect(pod, "pod/a/k@3", 103);      /* the sidecar before it alone */
	expect(pod, "pod/a/first@0", 110);  /* of its own place: as made before */
	expect(pod, "pod/a/late@1+", 133);  /* the second init container with the sidecar */
	expect(pod, "pod/a/later@3+", 123); /* the others with the sidecar */
	expect(pod, "pod/c/main", 133);
	expect(pod, "cdi/x", 133);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_the_most_of_any_stage),
		cmocka_unit_test(test_beside_one_that_is_to_come),
	};
	return cmocka_run_group_tests_name("pod stage", tests, NULL, NULL);
}
