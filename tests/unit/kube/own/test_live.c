#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/own/live.h"

#define GIB (UINT64_C(1) << 30)

/* A pod of the containers fetch (init), main and log, with these annotations. */
static struct kube_pod *pod_with(const char *annotations)
{
	char text[4096];
	struct kube_pod *pod;
	struct error err;
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
		 "\"resourceVersion\":\"1\",\"annotations\":{%s}},"
		 "\"spec\":{\"initContainers\":[{\"name\":\"fetch\"}],"
		 "\"containers\":[{\"name\":\"main\"},{\"name\":\"log\"}]}}",
		 annotations);
	json_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	if (pod_read(object, &pod, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(object);
	return pod;
}

static struct kube_live read_of(const char *annotations, const char *container)
{
	struct kube_pod *pod = pod_with(annotations);
	struct kube_live live;
	struct error err = { 0 };
	if (live_read(pod, container, &live, &err) < 0)
		fail_msg("%s", err.text);
	/* Only whether it is there: the text is the pod's. */
	if (live.on_full)
		live.on_full = strcmp(live.on_full, "wait") == 0 ? "wait" : "other";
	pod_free(pod);
	return live;
}

static void test_said(void **state)
{
	struct kube_live live = read_of("\"allot.dev/memory\":\"8GiB\",\"allot.dev/cores\":\"30\","
					"\"allot.dev/cores-limit\":\"60%\","
					"\"allot.dev/on-full\":\"wait\","
					"\"allot.dev/priority\":\"-5\","
					"\"allot.dev/sharing\":\"time\","
					"\"allot.dev/workload\":\"training\","
					"\"allot.dev/duration\":\"2h\","
					"\"allot.dev/concurrency\":\"8\","
					"\"allot.dev/cards\":\"2\"",
					"main");
	assert_int_equal(live.memories, 1);
	assert_int_equal(live.memory_bytes[0], 8 * GIB);
	assert_int_equal(live.cores, 1);
	assert_true(live.cores_pct[0] > 29.99 && live.cores_pct[0] < 30.01);
	assert_int_equal(live.limits, 1);
	assert_true(live.limit_pct[0] > 59.99 && live.limit_pct[0] < 60.01);
	assert_string_equal(live.on_full, "wait");
	assert_true(live.has_priority && live.priority == -5);
}

static void test_nothing_said(void **state)
{
	struct kube_live live = read_of("\"hami.io/vgpu-node\":\"n\",\"x/allot.dev\":\"1\","
					"\"notallot.dev/memory\":\"x\",\"memory\":\"y\"",
					"main");
	assert_int_equal(live.memories + live.cores + live.limits, 0);
	assert_null(live.on_full);
	assert_false(live.has_priority);
}

static void test_containers_own(void **state)
{
	static const char said[] = "\"allot.dev/memory\":\"8GiB\","
				   "\"main.allot.dev/memory\":\"1GiB, 2GiB\","
				   "\"log.allot.dev/cores\":\"0\"";
	struct kube_live live = read_of(said, "main");
	assert_int_equal(live.memories, 2);
	assert_int_equal(live.memory_bytes[0], GIB);
	assert_int_equal(live.memory_bytes[1], 2 * GIB);
	assert_int_equal(live.cores, 0);
	live = read_of(said, "log");
	assert_int_equal(live.memories, 1);
	assert_int_equal(live.memory_bytes[0], 8 * GIB);
	assert_int_equal(live.cores, 1);
	assert_true(live.cores_pct[0] < 0.001);
	live = read_of(said, "fetch");
	assert_int_equal(live.cores, 0);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *said, *word;
	} rows[] = {
		{ "\"allot.dev/memory\":\"8\"", "allot.dev/memory: '8'" },
		{ "\"allot.dev/memory\":\"\"", "allot.dev/memory: " },
		{ "\"allot.dev/memory\":\"8GiB,\"", "allot.dev/memory: " },
		{ "\"main.allot.dev/memory\":\"lots\"", "main.allot.dev/memory: 'lots'" },
		{ "\"allot.dev/cores\":\"130\"", "allot.dev/cores: '130'" },
		{ "\"allot.dev/cores-limit\":\"0\"", "allot.dev/cores-limit: '0'" },
		{ "\"allot.dev/on-full\":\"cry\"", "'cry': must be fail, wait or swap" },
		{ "\"allot.dev/sharing\":\"turns\"", "'turns': must be time or space" },
		{ "\"allot.dev/sharing\":\"auto\"", "'auto': was removed; must be time or space" },
		{ "\"allot.dev/memroy\":\"8GiB\"",
		  "allot.dev/memroy: there is no such annotation: must be one of memory, cores, cores-limit, on-full, sharing, priority, group, cards, workload, placement, gang, gang-size" },
		{ "\"nobody.allot.dev/memory\":\"8GiB\"", "has no container 'nobody'" },
		{ "\"allot.dev/cores\":\"1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\"", "at most 16 values" },
		{ "\"allot.dev/cores\":\"1\\n2\"", "allot.dev/cores: '1" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kube_pod *pod = pod_with(rows[i].said);
		struct kube_live live;
		struct error err = { 0 };
		int r = live_read(pod, "main", &live, &err);
		if (r >= 0 || !strstr(err.text, rows[i].word) || strchr(err.text, '\n'))
			fail_msg("%s: %d: '%s'", rows[i].said, r, err.text);
		pod_free(pod);
	}
}

static void text_must_be(const char *annotations, const char *text)
{
	struct kube_pod *pod = pod_with(annotations);
	char *got = live_text(pod);
	assert_string_equal(got, text);
	free(got);
	pod_free(pod);
}

static void test_text(void **state)
{
	text_must_be("", "");
	text_must_be("\"hami.io/x\":\"1\"", "");
	text_must_be("\"allot.dev/memory\":\"1GiB\",\"other\":\"2\",\"main.allot.dev/x\":\"\"",
		     "allot.dev/memory=1GiB\nmain.allot.dev/x=\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_said),           cmocka_unit_test(test_nothing_said),
		cmocka_unit_test(test_containers_own), cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
