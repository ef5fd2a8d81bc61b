/* The leader election's use of the Lease: the test is the API server and the watch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../captured_log.h"
#include "../../fake_kube.h"
#include "kube/client/watch.h"
#include "scheduler/cluster/leader.h"

static struct {
	const struct watch_handlers *handlers;
	void *data;
} watch;

struct kube_watch *kube_watch_start(struct kube_client *client, const char *collection,
				    const char *selector, const struct watch_handlers *handlers,
				    void *data)
{
	watch.handlers = handlers;
	watch.data = data;
	return (struct kube_watch *)&watch;
}

struct kube_watch *kube_watch_stop(struct kube_watch *stopped)
{
	return NULL;
}

static void changed(void *data, bool is_leader)
{
}

/* Returns a lease with this version and holder; `holder` is JSON. */
static json_t *lease_of(const char *version, const char *holder)
{
	char text[256];
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"resourceVersion\":\"%s\"},\"spec\":{\"holderIdentity\":%s,"
		 "\"leaseDurationSeconds\":15}}",
		 version, holder);
	json_t *lease = json_loads(text, 0, NULL);
	assert_non_null(lease);
	return lease;
}

/* Reports by the watch that the lease is there. */
static void report_lease(const char *version, const char *holder)
{
	json_t *lease = lease_of(version, holder);
	watch.handlers->object(watch.data, lease);
	json_decref(lease);
}

/* A malformed lease is logged once until it is repaired, and again if it is malformed again later. */
static void test_a_malformed_lease(void **state)
{
	const struct leader_terms terms = {
		.in_namespace = "ns", .name = "allot", .election.identity = "us", .changed = changed
	};
	struct leader *leader;
	assert_int_equal(leader_start(&terms, &leader), 0);
	struct captured_log log = captured_log_begin();
	ringing->handler(ringing->data);
	expect_call("GET", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/allot");
	json_t *malformed = lease_of("1", "7");
	answer_call(200, malformed);
	json_decref(malformed);
	report_lease("2", "7");
	assert_int_equal(captured_log_end(&log, "delete this lease"), 1);
	log = captured_log_begin();
	report_lease("3", "\"another\"");
	report_lease("4", "7");
	assert_int_equal(captured_log_end(&log, "delete this lease"), 1);
	leader_free(leader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_malformed_lease),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
