/* Claims whose terms are changed while they live, and restored. */
#include "../containers/claims/claims_fixture.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "daemon/api/terms_change.h"
#include "daemon/containers/claims/store.h"
#include "daemon/kubelet/kube/live_terms.h"

/* The expected terms of a claim on a device. */
static void must_have(struct claim *claim, unsigned device, uint64_t mib, double cores_pct,
		      double limit_pct)
{
	const struct promise *p = &claim_terms(claim)->device[device].promise;
	assert_int_equal(p->quota_bytes, mib * MIB);
	assert_true(p->cores_pct > cores_pct - 0.01 && p->cores_pct < cores_pct + 0.01);
	assert_true(p->limit_pct > limit_pct - 0.01 && p->limit_pct < limit_pct + 0.01);
}

static bool override(struct claim *claim, const struct claim_override *override)
{
	struct error err = { 0 };
	bool has_changed = false;
	if (claims_override_terms(claim, override, &has_changed, &err) < 0)
		fail_msg("%s", err.text);
	return has_changed;
}

static void override_refused(struct claim *claim, const struct claim_override *override, int code,
			     const char *word)
{
	struct error err = { 0 };
	bool has_changed = false;
	assert_int_equal(claims_override_terms(claim, override, &has_changed, &err), -code);
	if (!strstr(err.text, word))
		fail_msg("'%s' lacks '%s'", err.text, word);
	assert_false(has_changed);
}

static struct claim_override memory_of(uint64_t mib)
{
	return (struct claim_override){ .device[0] = { .has_memory = true,
						       .memory_bytes = mib * MIB } };
}

static const struct claim_override nothing = { 0 };

static void test_changed_and_given_back(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, -1);
	struct claim *claim = claim_made(f, &request);
	struct claim_override w = memory_of(2048);
	assert_true(override(claim, &w));
	must_have(claim, 0, 2048, 30, 30);
	assert_false(override(claim, &w));
	/* The guarantee alone: the cap was the same, and follows. Memory is as it was made. */
	w = (struct claim_override){ .device[0] = { .has_cores = true, .cores_pct = 50 } };
	assert_true(override(claim, &w));
	must_have(claim, 0, 1024, 50, 50);
	w.device[0].has_limit = true;
	w.device[0].limit_pct = 80;
	assert_true(override(claim, &w));
	must_have(claim, 0, 1024, 50, 80);
	assert_int_equal(claim_original_promise(claim, 0)->quota_bytes, 1024 * MIB);
	assert_true(override(claim, &nothing));
	must_have(claim, 0, 1024, 30, 30);
	assert_null(claim->original);
	assert_false(override(claim, &nothing));
	claims_must_hold(f);
}

static void test_on_full(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, -1);
	struct claim *claim = claim_made(f, &request);
	struct claim_override w = { .has_on_full = true, .on_full = ON_FULL_WAIT };
	struct region_control *control = claim->tenant->region.control;
	assert_true(override(claim, &w));
	assert_int_equal(claim_terms(claim)->on_full, ON_FULL_WAIT);
	assert_int_equal(atomic_load(&control->memory_waits), 1);
	assert_int_equal(f->node->waiter_count, 1);
	/* Its quota is no longer promised: another claim may have the whole card. */
	struct claim_request other = claim_of(f, "pod/2/main", 0, 8192, 30, -1);
	claim_made(f, &other);
	override_refused(claim, &nothing, ENOSPC, "does not fit");
	assert_int_equal(claim_terms(claim)->on_full, ON_FULL_WAIT);
	claims_restart(f);
	claim = claims_find(f->node->claims, "pod/1/main");
	assert_int_equal(claim_terms(claim)->on_full, ON_FULL_WAIT);
	assert_int_equal(claims_release(f->node->claims, "pod/2/main", NULL, NULL), 0);
	assert_true(override(claim, &nothing));
	assert_int_equal(claim_terms(claim)->on_full, ON_FULL_FAIL);
	control = claim->tenant->region.control;
	assert_int_equal(atomic_load(&control->memory_waits), 0);
	assert_int_equal(f->node->waiter_count, 0);
	w.on_full = ON_FULL_SWAP;
	override_refused(claim, &w, EOPNOTSUPP, "must stay 'fail'");
	claims_must_hold(f);
}

static void test_impossible(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, -1);
	struct claim_request other = claim_of(f, "pod/2/main", 0, 4096, 60, -1);
	struct claim *claim = claim_made(f, &request);
	claim_made(f, &other);
	struct claim_override w = memory_of(5000);
	override_refused(claim, &w, ENOSPC, "does not fit");
	/* If one part can't be granted, no part is. */
	w = memory_of(2048);
	w.device[0].has_limit = true;
	w.device[0].limit_pct = 20;
	override_refused(claim, &w, EINVAL, "is less than cores_pct (--cores) 30");
	must_have(claim, 0, 1024, 30, 30);
	assert_null(claim->original);
	/* Its former share is no longer free: the claim stays as it is until there is room. */
	w = memory_of(512);
	assert_true(override(claim, &w));
	struct claim_request third = claim_of(f, "pod/3/main", 0, 8192 - 4096 - 512, 0, -1);
	claim_made(f, &third);
	override_refused(claim, &nothing, ENOSPC, "does not fit");
	must_have(claim, 0, 512, 30, 30);
	/* ... and its memory alone still counts as changed. */
	w.device[0].has_cores = true;
	w.device[0].cores_pct = 20;
	assert_true(override(claim, &w));
	must_have(claim, 0, 512, 20, 20);
	claims_must_hold(f);
}

static void test_restart(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, 3);
	struct claim *claim = claim_made(f, &request);
	struct claim_override w = memory_of(2048);
	assert_true(override(claim, &w));
	claims_restart(f);
	claim = claims_find(f->node->claims, "pod/1/main");
	must_have(claim, 0, 2048, 30, 30);
	assert_int_equal(claim_original_promise(claim, 0)->quota_bytes, 1024 * MIB);
	assert_false(override(claim, &w));
	assert_true(override(claim, &nothing));
	claims_restart(f);
	claim = claims_find(f->node->claims, "pod/1/main");
	must_have(claim, 0, 1024, 30, 30);
	assert_null(claim->original);
	claims_must_hold(f);
}

static void execute(struct fixture *f, const char *sql)
{
	char path[128];
	sqlite3 *db;
	snprintf(path, sizeof(path), "%s/run/claims.db", f->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* A store as it was before terms could be changed is taken over. */
static void test_older_store(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, 3);
	claim_made(f, &request);
	fixture_stop(f);
	execute(f, "DROP TABLE asked; ALTER TABLE claim DROP COLUMN space_group; "
		   "PRAGMA user_version = 1");
	fixture_start(f);
	assert_int_equal(claims_counts(f->node->claims).stores_set_aside, 0);
	struct claim *claim = claims_find(f->node->claims, "pod/1/main");
	struct claim_override w = memory_of(2048);
	assert_true(override(claim, &w));
	claims_restart(f);
	claim = claims_find(f->node->claims, "pod/1/main");
	assert_int_equal(claim_original_promise(claim, 0)->quota_bytes, 1024 * MIB);
	claims_must_hold(f);
}

/* A store from before priorities could be changed, with a claim whose memory was changed. */
static void test_store_without_priorities(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, 3);
	struct claim *claim = claim_made(f, &request);
	struct claim_override w = memory_of(2048);
	assert_true(override(claim, &w));
	fixture_stop(f);
	execute(f, "ALTER TABLE asked DROP COLUMN priority; "
		   "ALTER TABLE claim DROP COLUMN space_group; PRAGMA user_version = 2");
	fixture_start(f);
	assert_int_equal(claims_counts(f->node->claims).stores_set_aside, 0);
	claim = claims_find(f->node->claims, "pod/1/main");
	must_have(claim, 0, 2048, 30, 30);
	assert_non_null(claim->original);
	assert_int_equal(claim->original->priority, 0);
	w.has_priority = true;
	w.priority = 7;
	assert_true(override(claim, &w));
	claims_restart(f);
	claim = claims_find(f->node->claims, "pod/1/main");
	assert_int_equal(claim_terms(claim)->priority, 7);
	assert_int_equal(claim->original->priority, 0);
	claims_must_hold(f);
}

/* One as it was when all took turns. */
static void test_store_without_groups(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, 3);
	claim_made(f, &request);
	fixture_stop(f);
	execute(f, "ALTER TABLE claim DROP COLUMN space_group; PRAGMA user_version = 3");
	fixture_start(f);
	assert_int_equal(claims_counts(f->node->claims).stores_set_aside, 0);
	const struct claim *claim = claims_find(f->node->claims, "pod/1/main");
	assert_int_equal(claim_terms(claim)->sharing.way, SHARING_TIME);
	claims_must_hold(f);
}

static void test_priority(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, -1);
	request.priority = 10;
	struct claim *claim = claim_made(f, &request);
	struct claim_override w = { .has_priority = true, .priority = -3 };
	assert_true(override(claim, &w));
	assert_false(override(claim, &w));
	assert_int_equal(claim_terms(claim)->priority, -3);
	claims_restart(f);
	claim = claims_find(f->node->claims, "pod/1/main");
	assert_int_equal(claim_terms(claim)->priority, -3);
	/* Wished for no more: as it was made. */
	w = memory_of(2048);
	assert_true(override(claim, &w));
	assert_int_equal(claim_terms(claim)->priority, 10);
	assert_true(override(claim, &nothing));
	assert_int_equal(claim_terms(claim)->priority, 10);
	assert_null(claim->original);
	claims_must_hold(f);
}

static void set_memory(struct fixture *f, struct claim *claim, uint64_t mib, int code)
{
	const struct promise_request request = { .has_memory = true, .memory_bytes = mib * MIB };
	struct terms_change change = terms_change_of(claim->tenant);
	int r = terms_change_device(claim->tenant, &change, 0, NULL, &request, NULL);
	if (r >= 0)
		r = claims_set_terms(f->node->claims, claim->tenant, &change, NULL);
	assert_int_equal(r, -code);
}

/* A claim for a ResourceClaim keeps its original terms when a user changes them, also across restarts; other claims do not. */
static void test_set_by_a_user(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, CLAIM_KEY_DRA "1/default/a", 0, 1024, 30, -1);
	struct claim_request other = claim_of(f, "pod/1/main", 0, 1024, 30, -1);
	struct claim *claim = claim_made(f, &request), *plain = claim_made(f, &other);
	set_memory(f, claim, 8192, ENOSPC);
	assert_null(claim->original);
	set_memory(f, claim, 2048, 0);
	set_memory(f, claim, 3072, 0);
	set_memory(f, plain, 2048, 0);
	assert_null(plain->original);
	must_have(plain, 0, 2048, 30, 30);
	claims_restart(f);
	claim = claims_find(f->node->claims, request.key);
	must_have(claim, 0, 3072, 30, 30);
	assert_int_equal(claim_original_promise(claim, 0)->quota_bytes, 1024 * MIB);
	claims_must_hold(f);
}

/* A claim with half of its original terms is not valid: the live tenants keep theirs. */
static void test_torn_asked(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "pod/1/main", 0, 1024, 30, 3);
	struct claim *claim = claim_made(f, &request);
	struct claim_override w = memory_of(2048);
	assert_true(override(claim, &w));
	fixture_stop(f);
	execute(f, "UPDATE asked SET place = 1");
	fixture_start(f);
	assert_int_equal(claims_counts(f->node->claims).stores_set_aside, 1);
	must_have(claims_find(f->node->claims, "pod/1/main"), 0, 2048, 30, 30);
	claims_must_hold(f);
}

static void test_values_and_devices(void **state)
{
	struct kube_live said = { .memories = 2,
				  .cores = 1,
				  .memory_bytes = { GIB, 2 * GIB },
				  .cores_pct = { 20 },
				  .on_full = "wait" };
	struct claim_override w;
	struct error err = { 0 };
	assert_int_equal(live_terms_to_override(&said, 2, &w, &err), 0);
	assert_int_equal(w.device[0].memory_bytes, GIB);
	assert_int_equal(w.device[1].memory_bytes, 2 * GIB);
	assert_true(w.device[1].has_cores && w.device[1].cores_pct > 19.9);
	assert_false(w.device[0].has_limit);
	assert_true(w.has_on_full && w.on_full == ON_FULL_WAIT);
	assert_int_equal(live_terms_to_override(&said, 3, &w, &err), -EINVAL);
	assert_string_equal(err.text,
			    "allot.dev/memory: 2 values: must be one, or one for each of the "
			    "container's 3 GPUs");
}

int main(void)
{
#define WITH_DAEMON(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		WITH_DAEMON(test_changed_and_given_back),
		WITH_DAEMON(test_on_full),
		WITH_DAEMON(test_impossible),
		WITH_DAEMON(test_restart),
		WITH_DAEMON(test_older_store),
		WITH_DAEMON(test_store_without_priorities),
		WITH_DAEMON(test_store_without_groups),
		WITH_DAEMON(test_priority),
		WITH_DAEMON(test_set_by_a_user),
		WITH_DAEMON(test_torn_asked),
		cmocka_unit_test(test_values_and_devices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
