/* The store turns out to be torn while the daemon uses it. */
#include "claims_fixture.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "failing_vfs.h"

static struct claim *claim_first(struct fixture *f)
{
	struct claim_request request = claim_of(f, "a", 0, 1024, 30, 0);
	return claim_made(f, &request);
}

static int allocate_second(struct fixture *f, struct error *err)
{
	struct claim_request request = claim_of(f, "b", 0, 1024, 30, 1);
	struct claim *claim;
	return claims_allocate(f->node->claims, &request, &claim, err);
}

static int release_first(struct fixture *f, struct error *err)
{
	return claims_release(f->node->claims, "a", "by the test", err);
}

static int change_first(struct fixture *f, struct error *err)
{
	struct claim_override override = { .has_priority = true, .priority = 7 };
	bool changed;
	return claims_override_terms(claims_find(f->node->claims, "a"), &override, &changed, err);
}

static int rename_first(struct fixture *f, struct error *err)
{
	return claims_rename(claims_find(f->node->claims, "a"), "c", "c", err);
}

struct state_of_claims {
	unsigned count;
	bool has_second, is_renamed;
	int priority;
};

static struct state_of_claims look(struct fixture *f)
{
	struct claim *first = claims_find(f->node->claims, "a");
	struct claim *renamed = claims_find(f->node->claims, "c");
	if (renamed)
		first = renamed;
	claims_must_hold(f);
	return (struct state_of_claims){
		.count = claims_count(f->node->claims),
		.has_second = claims_find(f->node->claims, "b"),
		.is_renamed = renamed,
		.priority = first ? claim_terms(first)->priority : 0,
	};
}

static const struct {
	const char *name;
	int (*act)(struct fixture *f, struct error *err);
	struct state_of_claims after;
} rows[] = {
	{ "allocate", allocate_second, { .count = 2, .has_second = true } },
	{ "release", release_first, { .count = 0 } },
	{ "change", change_first, { .count = 1, .priority = 7 } },
	{ "rename", rename_first, { .count = 1, .is_renamed = true } },
};

static void must_be(const char *name, struct fixture *f, const struct state_of_claims *wanted)
{
	struct state_of_claims now = look(f);
	if (now.count != wanted->count || now.has_second != wanted->has_second ||
	    now.is_renamed != wanted->is_renamed || now.priority != wanted->priority)
		fail_msg("%s: %u claims, second %d, renamed %d, priority %d", name, now.count,
			 now.has_second, now.is_renamed, now.priority);
}

/* Sets the store aside, writes all claims to a new one, and carries the request out. */
static void test_made_again(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { 0 };
		assert_int_equal(fixture_setup(state), 0);
		struct fixture *f = *state;
		claim_first(f);
		failing_vfs.torn_left = 1;
		if (rows[i].act(f, &err) < 0)
			fail_msg("%s: %s", rows[i].name, err.text);
		assert_int_equal(claims_counts(f->node->claims).stores_set_aside, 1);
		must_be(rows[i].name, f, &rows[i].after);
		claims_restart(f);
		must_be(rows[i].name, f, &rows[i].after);
		fixture_teardown(state);
	}
}

/* The torn store can't be renamed, because directories have the names. The error has both reasons. */
static void test_name_taken(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	char taken[200];
	claim_first(f);
	for (int s = 0; s < 30; s++) {
		snprintf(taken, sizeof(taken), "%s/run/claims.db.bad-%lld", f->dir,
			 (long long)time(NULL) + s);
		assert_int_equal(mkdir(taken, 0700), 0);
	}
	failing_vfs.torn_left = 1;
	assert_true(release_first(f, &err) < 0);
	assert_non_null(strstr(err.text, "and the file can't be renamed: rename "));
	assert_ptr_not_equal(strstr(err.text, "; and the file"), err.text);
	assert_int_equal(claims_counts(f->node->claims).stores_set_aside, 0);
}

/*
 * The disk fills up at each write of the new store in turn. The request fails and changes nothing.
 * When there is room, it succeeds, and the store has all claims.
 */
static void test_disk_full_meanwhile(void **state)
{
	static const struct state_of_claims before = { .count = 1 };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned failed = 0;
		for (int n = 0, r = -1; r < 0 && n < 100; n++) {
			struct error err = { 0 };
			assert_int_equal(fixture_setup(state), 0);
			struct fixture *f = *state;
			claim_first(f);
			failing_vfs.torn_left = 1;
			failing_vfs.failure = SQLITE_FULL;
			failing_vfs.writes_left = n;
			r = rows[i].act(f, &err);
			failing_vfs.writes_left = -1;
			if (r < 0) {
				failed++;
				must_be(rows[i].name, f, &before);
				r = rows[i].act(f, &err);
				if (r < 0)
					fail_msg("%s, write %d: %s", rows[i].name, n, err.text);
				r = -1;
			}
			must_be(rows[i].name, f, &rows[i].after);
			claims_restart(f);
			must_be(rows[i].name, f, &rows[i].after);
			fixture_teardown(state);
		}
		assert_true(failed > 0);
	}
}

static int setup(void **state)
{
	failing_vfs_install();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_made_again, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_name_taken, fixture_setup, fixture_teardown),
		cmocka_unit_test_teardown(test_disk_full_meanwhile, fixture_teardown),
	};
	return cmocka_run_group_tests_name("torn claim store", tests, setup, NULL);
}
