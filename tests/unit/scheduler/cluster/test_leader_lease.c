#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/cluster/leader_lease.h"

static int read_text(const char *text, struct lease *ret, struct error *err)
{
	json_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	int r = lease_read(object, ret, err);
	json_decref(object);
	return r;
}

/* As a component of Kubernetes 1.34 wrote it. */
static void test_recorded(void **state)
{
	struct lease lease;
	assert_int_equal(
		read_text("{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/"
			  "v1\",\"metadata\":"
			  "{\"name\":\"kube-scheduler\",\"namespace\":\"kube-system\","
			  "\"resourceVersion\":\"4711\"},\"spec\":{\"holderIdentity\":\"host_1-2\","
			  "\"leaseDurationSeconds\":15,\"acquireTime\":\"2026-08-21T10:00:00."
			  "000001Z\","
			  "\"renewTime\":\"2026-08-21T10:00:02.123456Z\",\"leaseTransitions\":3}}",
			  &lease, NULL),
		0);
	assert_string_equal(lease.holder, "host_1-2");
	assert_int_equal(lease.duration_s, 15);
	assert_string_equal(lease.acquired, "2026-08-21T10:00:00.000001Z");
	assert_string_equal(lease.renewed, "2026-08-21T10:00:02.123456Z");
	assert_int_equal(lease.transitions, 3);
	assert_string_equal(lease.version, "4711");
}

static void test_almost_nothing(void **state)
{
	struct lease lease;
	assert_int_equal(read_text("{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":"
				   "{\"holderIdentity\":null}}",
				   &lease, NULL),
			 0);
	assert_string_equal(lease.holder, "");
	assert_int_equal(lease.duration_s, 0);
}

static void test_broken(void **state)
{
	static const struct {
		const char *text, *why;
	} row[] = {
		{ "{}", "lease: metadata.resourceVersion: missing" },
		{ "[]", "lease: metadata.resourceVersion: missing" },
		{ "{\"metadata\":{\"resourceVersion\":1}}",
		  "lease: resourceVersion: must be a string of less than 64 bytes" },
		{ "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":[]}}",
		  "lease: holderIdentity: must be a string of less than 256 bytes" },
		{ "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"leaseDurationSeconds\":-1}"
		  "}",
		  "lease: leaseDurationSeconds: must be 0 to 1000000000" },
		{ "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"leaseTransitions\":\"1\"}"
		  "}",
		  "lease: leaseTransitions: must be 0 to 1000000000" },
	};
	struct lease lease;
	struct error err;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(read_text(row[i].text, &lease, &err), -EINVAL);
		assert_string_equal(err.text, row[i].why);
	}
}

static void test_there_and_back(void **state)
{
	struct lease lease = { .holder = "me", .duration_s = 15, .transitions = 7, .version = "12" };
	struct lease again;
	lease_format_time(UINT64_C(1790000000123456789), lease.renewed);
	lease_format_time(UINT64_C(1790000000000000999), lease.acquired);
	assert_string_equal(lease.renewed, "2026-09-21T14:13:20.123456Z");
	assert_string_equal(lease.acquired, "2026-09-21T14:13:20.000000Z");
	char *text = lease_patch(&lease);
	assert_int_equal(read_text(text, &again, NULL), 0);
	assert_memory_equal(&lease, &again, sizeof(lease));
	free(text);
	text = lease_body("ns", "name", &lease);
	json_t *object = json_loads(text, 0, NULL);
	const json_t *meta = json_object_get(object, "metadata");
	assert_string_equal(json_string_value(json_object_get(meta, "name")), "name");
	assert_string_equal(json_string_value(json_object_get(meta, "namespace")), "ns");
	assert_null(json_object_get(meta, "resourceVersion"));
	json_decref(object);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_almost_nothing),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_there_and_back),
	};
	return cmocka_run_group_tests_name("scheduler/lease", tests, NULL, NULL);
}
