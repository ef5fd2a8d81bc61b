/* Allocation and release of claims, refused requests, and the expiry of claims that nothing needs. */
#include "claims_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

static void test_allocate_and_release(void **state)
{
	struct fixture *f = *state;
	char path[NODE_PATH_MAX];
	struct stat st;
	struct claim_request request = claim_of(f, "pod-1/main", 0, 1024, 30, 3);
	struct claim *claim = claim_made(f, &request);
	const struct tenant_terms *terms = claim_terms(claim);
	assert_string_equal(terms->name, "pod-1-main");
	assert_string_equal(terms->claim.key, "pod-1/main");
	assert_int_equal(terms->device[0].promise.quota_bytes, GIB);
	assert_true(slots_has(&terms->device[0].slots, 3));
	assert_int_equal(slots_count(&terms->device[0].slots), 1);
	assert_string_equal(claim_uuid(claim, 0), f->node->card[0].info.uuid_text);
	assert_ptr_equal(claims_of_tenant(f->node->claims, claim->tenant), claim);
	/* Any user who has the directory mounted may use the socket; no other can reach it. */
	tenant_path(claim->tenant, "allot.sock", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	tenant_dir_path(f->node, TENANT_PLACE_CLAIM, NULL, NULL, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	int pid = client_spawn(f, claim->tenant, 0, NULL);
	claims_must_hold(f);
	claim_released(f, "pod-1/main");
	/* The tenant exists until its process ends, and belongs to no claim after a restart. */
	assert_int_equal(f->node->tenant_count, 1);
	struct error err = { 0 };
	assert_int_equal(claims_release(f->node->claims, "pod-1/main", NULL, &err), -ENOENT);
	struct claims_counts counts = claims_counts(f->node->claims);
	assert_int_equal(counts.made, 1);
	assert_int_equal(counts.released, 1);
	fixture_stop(f);
	fixture_start(f);
	assert_int_equal(f->node->tenant_count, 1);
	assert_null(claims_find(f->node->claims, "pod-1/main"));
	claims_must_hold(f);
	client_kill(pid);
	fixture_until(f, f->node->tenant_count == 0);
	claims_must_hold(f);
}

static void test_tenant_names_are_valid_and_unique(void **state)
{
	static const struct {
		const char *key, *wish, *name;
	} rows[] = {
		{ "a/b", "web", "web" },
		{ "a/c", "web", "web-" }, /* followed by an id */
		{ "a/d", "_x y", "cx-y" },
		{ "a/e", "", "c" },
		{ "a/f", "0123456789012345678901234567890123456789012345678901234567890123456789",
		  "012345678901234567890123456789012345678901234567890123-" },
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct claim_request request = claim_of(f, rows[i].key, 0, 16, 1, -1);
		request.tenant = rows[i].wish;
		const char *name = claim_terms(claim_made(f, &request))->name;
		if (strncmp(name, rows[i].name, strlen(rows[i].name)) != 0)
			fail_msg("'%s' became '%s', expected '%s...'", rows[i].wish, name,
				 rows[i].name);
		assert_true(strlen(name) < REGION_NAME_MAX);
	}
	claims_must_hold(f);
}

static void test_refused_requests(void **state)
{
	struct fixture *f = *state;
	char long_key[CLAIM_KEY_MAX + 1];
	f->node->config.refuse_overcommit = true;
	struct claim_request first = claim_of(f, "a", 0, 5 * 1024, 60, 0);
	claim_made(f, &first);
	struct claim_request r = claim_of(f, "a", 1, 1, 1, -1);
	claim_refused(f, &r, EEXIST, "already exists");
	r = claim_of(f, "b", 0, 4 * 1024, 1, 1);
	claim_refused(f, &r, ENOSPC, "at most 3 GiB (3072MiB) is unpromised");
	r = claim_of(f, "b", 0, 1, 41, 1);
	claim_refused(f, &r, ENOSPC, "at most 40");
	r = claim_of(f, "b", 0, 1, 1, 0);
	claim_refused(f, &r, EEXIST, "-0 belongs to claim 'a'");
	r = claim_of(f, "", 0, 1, 1, 1);
	claim_refused(f, &r, EINVAL, "key");
	r = claim_of(f, "a b", 0, 1, 1, 1);
	claim_refused(f, &r, EINVAL, "key");
	memset(long_key, 'k', CLAIM_KEY_MAX);
	long_key[CLAIM_KEY_MAX] = '\0';
	r = claim_of(f, long_key, 0, 1, 1, 1);
	claim_refused(f, &r, EINVAL, "key");
	r = claim_of(f, "b", 0, 0, 1, 1);
	claim_refused(f, &r, EINVAL, "memory_bytes (--memory) 0");
	r = claim_of(f, "b", 0, 1, 1, 1);
	r.device_count = 0;
	claim_refused(f, &r, EINVAL, "1 to 16");
	r.device_count = 2;
	claim_refused(f, &r, ENODEV, "one of its GPUs is not on this node");
	r.device[1] = r.device[0];
	claim_refused(f, &r, EINVAL, "twice");
	claims_must_hold(f);
	struct claims_counts counts = claims_counts(f->node->claims);
	assert_int_equal(counts.refused_full, 2);
	assert_int_equal(counts.refused_request, 9);
	assert_int_equal(counts.refused_store + counts.refused_other, 0);
}

static void test_no_control_needs_a_setting(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 0, 16, 1, -1);
	request.wants_no_control = true;
	assert_false(claim_terms(claim_made(f, &request))->claim.is_uncontrolled);
	assert_int_equal(claims_counts(f->node->claims).control_refused, 1);
	f->node->config.allow_disable_control = true;
	request.key = "b";
	assert_true(claim_terms(claim_made(f, &request))->claim.is_uncontrolled);
	claims_restart(f);
	assert_false(claim_terms(claims_find(f->node->claims, "a"))->claim.is_uncontrolled);
	assert_true(claim_terms(claims_find(f->node->claims, "b"))->claim.is_uncontrolled);
}

/* Neither the end of a connection nor a request to remove the tenant ends a claim's tenant. */
static void test_tenant_is_removed_only_by_release(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "cdi/a", 0, 16, 1, -1);
	request.tenant = "a";
	claim_made(f, &request);
	fixture_refused(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}", EBUSY, "cdi/a");
	fixture_refused(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\"}", EEXIST, "in use");
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"attach\",\"name\":\"a\"}"));
	session_end(&f->session);
	fixture_turn(f, 20);
	assert_non_null(node_find_tenant(f->node, "a"));
	claims_must_hold(f);
}

/* ---- claims that expire when nothing needs them ---- */

static enum claim_need need;
static unsigned need_checks;

static enum claim_need answer_need(void *data, const struct claim *claim)
{
	need_checks++;
	return need;
}

static void wait_past_grace(struct fixture *f)
{
	f->node->config.claim_grace_ns = NSEC_PER_MSEC;
	claims_reconcile(f->node->claims);
	fixture_turn(f, 2);
	claims_reconcile(f->node->claims);
}

static void do_nothing(struct client *c)
{
}

static void test_unneeded_claim_expires(void **state)
{
	struct fixture *f = *state;
	struct claim_request wanted = claim_of(f, "a", 0, 16, 1, 0);
	struct claim_request kept = claim_of(f, "b", 0, 16, 1, 1);
	wanted.while_wanted = true;
	struct claim *claim = claim_made(f, &wanted);
	claim_made(f, &kept);
	claims_reconcile(f->node->claims); /* within the grace period */
	assert_int_equal(claims_count(f->node->claims), 2);
	int pid = client_spawn(f, claim->tenant, 0, do_nothing);
	wait_past_grace(f);
	assert_int_equal(claims_count(f->node->claims), 2); /* its tenant has a process */
	need_checks = 0;
	assert_int_equal(claims_add_need_check(f->node->claims, answer_need, NULL, NULL), 0);
	client_kill(pid);
	fixture_until(f, claims_find(f->node->claims, "a")->tenant->process_count == 0);
	need = CLAIM_UNKNOWN;
	wait_past_grace(f);
	need = CLAIM_WANTED;
	wait_past_grace(f);
	assert_int_equal(need_checks, 4); /* only for the claim that may expire */
	assert_int_equal(claims_count(f->node->claims), 2);
	need = CLAIM_UNWANTED;
	wait_past_grace(f);
	assert_null(claims_find(f->node->claims, "a"));
	assert_non_null(claims_find(f->node->claims, "b"));
	assert_int_equal(claims_counts(f->node->claims).expired, 1);
	assert_int_equal(claims_counts(f->node->claims).released, 0);
	claims_remove_need_check(f->node->claims, answer_need, NULL);
	claims_must_hold(f);
	claims_restart(f);
	assert_int_equal(claims_count(f->node->claims), 1);
}

/* The grace period begins at the first check that finds the claim unneeded, not at the check before. */
static void test_grace_begins_when_claim_is_unneeded(void **state)
{
	struct fixture *f = *state;
	struct claim_request wanted = claim_of(f, "a", 0, 16, 1, 0);
	wanted.while_wanted = true;
	claim_made(f, &wanted);
	assert_int_equal(claims_add_need_check(f->node->claims, answer_need, NULL, NULL), 0);
	f->node->config.claim_grace_ns = 20 * NSEC_PER_MSEC;
	for (unsigned i = 0; i < 2; i++) {
		need = CLAIM_WANTED;
		claims_reconcile(f->node->claims);
		fixture_turn(f, 30);
		need = CLAIM_UNWANTED;
		claims_reconcile(f->node->claims);
		assert_non_null(claims_find(f->node->claims, "a"));
	}
	fixture_turn(f, 30);
	claims_reconcile(f->node->claims);
	assert_null(claims_find(f->node->claims, "a"));
	claims_remove_need_check(f->node->claims, answer_need, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_allocate_and_release),
		TEST(test_tenant_names_are_valid_and_unique),
		TEST(test_refused_requests),
		TEST(test_no_control_needs_a_setting),
		TEST(test_tenant_is_removed_only_by_release),
		TEST(test_unneeded_claim_expires),
		TEST(test_grace_begins_when_claim_is_unneeded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
