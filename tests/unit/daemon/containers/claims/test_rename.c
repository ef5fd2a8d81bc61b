/* Claims that turn out to be another's: the key and the tenant's name change, and nothing else. */
#include "claims_fixture.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/tasks/violation/violations.h"

static void test_renamed(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, 3);
	struct claim *claim = claim_made(f, &request);
	char id[TENANT_ID_MAX];
	strcpy(id, claim_terms(claim)->id);
	assert_int_equal(claims_rename(claim, "pod/2/main", "team.b.main", &err), 0);
	assert_null(claims_find(f->node->claims, "pod/1/main"));
	assert_ptr_equal(claims_find(f->node->claims, "pod/2/main"), claim);
	assert_ptr_equal(node_find_tenant(f->node, "team.b.main"), claim->tenant);
	claims_must_hold(f);
	/* The next claim may use the old name. */
	request = claim_of(f, "pod/1/main", 0, 1024, 30, 4);
	claim_made(f, &request);
	claims_restart(f);
	claim = claims_find(f->node->claims, "pod/2/main");
	assert_non_null(claim);
	assert_string_equal(claim_terms(claim)->name, "team.b.main");
	assert_string_equal(claim_terms(claim)->id, id);
	assert_true(slots_has(&claim_terms(claim)->device[0].slots, 3));
	assert_int_equal(claim_terms(claim)->device[0].promise.quota_bytes, 1024 * MIB);
	claims_must_hold(f);
}

/* As two pods' containers may have been taken for each other. */
static void test_names_that_are_in_use(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, -1);
	request.tenant = "a";
	struct claim *claim = claim_made(f, &request);
	request.key = "pod/2/main";
	request.tenant = "b";
	claim_made(f, &request);
	assert_int_equal(claims_rename(claim, "pod/2/main", "b", &err), -EEXIST);
	assert_non_null(strstr(err.text, "claim 'pod/2/main' already exists"));
	assert_int_equal(claims_rename(claim, "a b", "b", &err), -EINVAL);
	assert_string_equal(claim_terms(claim)->claim.key, "pod/1/main");
	assert_string_equal(claim_terms(claim)->name, "a");
	/* A name for people gets an id where it is not the only one. */
	assert_int_equal(claims_rename(claim, "pod/2/main/x", "b", &err), 0);
	assert_int_equal(strncmp(claim_terms(claim)->name, "b-", 2), 0);
	claims_must_hold(f);
}

static unsigned count_offenders(struct fixture *f, const char *tenant)
{
	json_t *list = violations_of_tenant(f->node->violations, tenant);
	size_t count = json_array_size(list);
	json_decref(list);
	return (unsigned)count;
}

/* An offender stays its tenant's. */
static void test_offenders_are_renamed(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, -1);
	struct claim *claim = claim_made(f, &request);
	request.key = "pod/3/main";
	struct claim *other = claim_made(f, &request);
	int pid = client_spawn(f, claim->tenant, 0, NULL);
	int pid_of_other = client_spawn(f, other->tenant, 0, NULL);
	violations_note_over(f->node->violations, claim->tenant, pid, VIOLATION_OVER_QUOTA, 0,
			     2 * GIB, GIB);
	violations_note_over(f->node->violations, other->tenant, pid_of_other, VIOLATION_OVER_QUOTA,
			     0, 2 * GIB, GIB);
	assert_int_equal(claims_rename(claim, "pod/2/main", "b", &err), 0);
	assert_int_equal(count_offenders(f, "pod-1-main"), 0);
	assert_int_equal(count_offenders(f, "b"), 1);
	assert_int_equal(count_offenders(f, "pod-3-main"), 1);
	client_kill(pid);
	client_kill(pid_of_other);
}

/* Records of which tenant has the GPU, and processes that join, show the new name. */
static void test_leases_are_renamed(void **state)
{
	static struct lease_span span[LEASE_SPANS_MAX];
	struct fixture *f = *state;
	struct error err = { 0 };
	struct client c;
	uint64_t since;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, -1);
	struct claim *claim = claim_made(f, &request);
	struct arbitration *a = f->node->card[0].arbitration;
	assert_int_equal(claims_rename(claim, "pod/2/main", "b", &err), 0);
	client_register(f, client_connect(claim->tenant), 0, &c);
	assert_string_equal(c.control->tenant_name, "b");
	assert_int_equal(arbitration_watch_spans(a, true), 0);
	c.report->slot[c.reply.slot].device[0].waiting = 1; /* a launch that wants the lease */
	fixture_until(f, arbitration_spans(a, 0, clock_now_ns(), span, &since) > 0);
	assert_string_equal(span[0].tenant, "b");
	arbitration_watch_spans(a, false);
	client_close(&c);
}

int main(void)
{
#define WITH_DAEMON(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		WITH_DAEMON(test_renamed),
		WITH_DAEMON(test_names_that_are_in_use),
		WITH_DAEMON(test_offenders_are_renamed),
		WITH_DAEMON(test_leases_are_renamed),
	};
	return cmocka_run_group_tests_name("claims renamed", tests, NULL, NULL);
}
