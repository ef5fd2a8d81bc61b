/* Which gang a pod says it is in, by whose names. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "scheduler/gang/gang_read.h"

static int read_gang(const char *meta, struct gang_annotations *ret, struct error *err)
{
	static json_t *object; /* its texts are looked at until the next one is read */
	json_decref(object);
	char text[1024];
	snprintf(text, sizeof(text), "{\"metadata\":{%s}}", meta);
	object = json_loads(text, 0, NULL);
	assert_non_null(object);
	*err = (struct error){ 0 };
	return gang_read(object, ret, err);
}

static void test_names(void **state)
{
	static const struct {
		const char *meta, *by;
		unsigned size;
	} rows[] = {
		{ "\"annotations\":{\"allot.dev/gang\":\"train\",\"allot.dev/gang-size\":\"4\"}",
		  "allot.dev/gang", 4 },
		{ "\"labels\":{\"allot.dev/gang\":\"train\",\"allot.dev/gang-size\":\"4\"}",
		  "allot.dev/gang", 4 },
		{ "\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"train\"}",
		  "scheduling.x-k8s.io/pod-group", 0 },
		{ "\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"train\"},"
		  "\"annotations\":{\"allot.dev/gang-size\":\"2\"}",
		  "scheduling.x-k8s.io/pod-group", 2 },
		{ "\"labels\":{\"pod-group.scheduling.sigs.k8s.io/name\":\"train\","
		  "\"pod-group.scheduling.sigs.k8s.io/min-available\":\"3\"}",
		  "pod-group.scheduling.sigs.k8s.io/name", 3 },
		{ "\"annotations\":{\"scheduling.k8s.io/group-name\":\"train\","
		  "\"scheduling.volcano.sh/group-min-member\":\"8\"}",
		  "scheduling.k8s.io/group-name", 8 },
		{ "\"annotations\":{\"scheduling.volcano.sh/group-name\":\"train\"}",
		  "scheduling.volcano.sh/group-name", 0 },
		{ "\"annotations\":{\"gang.scheduling.koordinator.sh/name\":\"train\","
		  "\"gang.scheduling.koordinator.sh/min-available\":\"5\"}",
		  "gang.scheduling.koordinator.sh/name", 5 },
		{ "\"labels\":{\"kueue.x-k8s.io/pod-group-name\":\"train\"},"
		  "\"annotations\":{\"kueue.x-k8s.io/pod-group-total-count\":\"6\"}",
		  "kueue.x-k8s.io/pod-group-name", 6 },
		{ "\"labels\":{\"batch.kubernetes.io/job-name\":\"train\"},"
		  "\"annotations\":{\"allot.dev/gang-size\":\"7\"}",
		  "batch.kubernetes.io/job-name", 7 },
		{ "\"labels\":{\"job-name\":\"train\"},"
		  "\"annotations\":{\"allot.dev/gang-size\":\"7\"}",
		  "job-name", 7 },
		/* Ours goes before the group's own. */
		{ "\"labels\":{\"pod-group.scheduling.sigs.k8s.io/name\":\"train\","
		  "\"pod-group.scheduling.sigs.k8s.io/min-available\":\"3\","
		  "\"allot.dev/gang-size\":\"9\"}",
		  "pod-group.scheduling.sigs.k8s.io/name", 9 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gang_annotations said;
		struct error err;
		if (read_gang(rows[i].meta, &said, &err) < 0)
			fail_msg("%s: %s", rows[i].meta, err.text);
		assert_string_equal(said.name, "train");
		assert_string_equal(said.by, rows[i].by);
		assert_int_equal(said.size, rows[i].size);
	}
}

static void test_pods_of_no_gang(void **state)
{
	static const char *const metas[] = {
		"", "\"annotations\":{}", "\"labels\":{\"batch.kubernetes.io/job-name\":\"train\"}",
		"\"annotations\":{\"allot.dev/gang\":5}"
	};
	for (size_t i = 0; i < sizeof(metas) / sizeof(metas[0]); i++) {
		struct gang_annotations said;
		struct error err;
		assert_int_equal(read_gang(metas[i], &said, &err), 0);
		assert_null(said.name);
	}
}

static void test_what_can_not_be(void **state)
{
	static const struct {
		const char *meta, *name, *text;
	} rows[] = {
		{ "\"annotations\":{\"allot.dev/gang\":\"a\",\"allot.dev/gang-size\":\"four\"}",
		  "a", "allot.dev/gang-size: 'four'" },
		{ "\"annotations\":{\"allot.dev/gang\":\"a\",\"allot.dev/gang-size\":\"0\"}", "a",
		  "allot.dev/gang-size: '0'" },
		{ "\"annotations\":{\"allot.dev/gang\":\"a\",\"allot.dev/gang-size\":\"4097\"}",
		  "a", "allot.dev/gang-size: '4097'" },
		{ "\"annotations\":{\"allot.dev/gang\":\"a b\",\"allot.dev/gang-size\":\"4\"}", "",
		  "allot.dev/gang: must have only letters" },
		{ "\"annotations\":{\"allot.dev/gang\":\"\"}", "",
		  "allot.dev/gang: must have only letters" },
		{ "\"annotations\":{\"allot.dev/gang-size\":\"4\"}", "",
		  "allot.dev/gang-size is set without allot.dev/gang" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gang_annotations said;
		struct error err;
		assert_int_equal(read_gang(rows[i].meta, &said, &err), -EINVAL);
		assert_int_equal(err.code, EINVAL);
		assert_string_equal(said.name, rows[i].name);
		if (strncmp(err.text, rows[i].text, strlen(rows[i].text)) != 0)
			fail_msg("%s", err.text);
	}
}

static void test_gates(void **state)
{
	static const struct {
		const char *spec;
		bool is_gated;
	} rows[] = { { "{}", false },
		     { "{\"schedulingGates\":[]}", false },
		     { "{\"schedulingGates\":[{\"name\":\"kueue.x-k8s.io/admission\"}]}", true } };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *spec = json_loads(rows[i].spec, 0, NULL);
		json_t *pod = json_pack("{s:o}", "spec", spec);
		assert_int_equal(gang_is_gated(pod), rows[i].is_gated);
		json_decref(pod);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names),
					    cmocka_unit_test(test_pods_of_no_gang),
					    cmocka_unit_test(test_what_can_not_be),
					    cmocka_unit_test(test_gates) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
