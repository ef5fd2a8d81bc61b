#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "policy/memory/promise.h"

#define GIB (UINT64_C(1) << 30)

static const struct promise_card empty = { .index = 3, .memory_bytes = 8 * GIB };

static void refused(const struct promise_card *card, const struct promise *now, uint64_t held,
		    struct promise_request request, int code, const char *word)
{
	struct promise p;
	struct error err = { 0 };
	assert_int_equal(promise_decide(card, now, held, &request, &p, &err), -code);
	if (!strstr(err.text, word) || !strstr(err.text, "GPU 3"))
		fail_msg("'%s' does not say '%s'", err.text, word);
}

static struct promise decided(const struct promise_card *card, const struct promise *now,
			      uint64_t held, struct promise_request request)
{
	struct promise p;
	struct error err = { 0 };
	if (promise_decide(card, now, held, &request, &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void test_nothing_asked(void **state)
{
	struct promise_card card = empty;
	card.promised_bytes = 3 * GIB;
	struct promise p = decided(&card, NULL, 0, (struct promise_request){ 0 });
	assert_false(p.memory_given);
	assert_int_equal(p.quota_bytes, 5 * GIB);
	assert_true(p.cores_pct == 0 && p.limit_pct == 100);
}

static void test_limit_follows_cores(void **state)
{
	struct promise p = decided(&empty, NULL, 0,
				   (struct promise_request){ .has_cores = true, .cores_pct = 30 });
	assert_true(p.limit_pct == 30);
	p = decided(&empty, &p, 0, (struct promise_request){ .has_cores = true, .cores_pct = 50 });
	assert_true(p.limit_pct == 50);
	p = decided(&empty, &p, 0, (struct promise_request){ .has_limit = true, .limit_pct = 60 });
	p = decided(&empty, &p, 0, (struct promise_request){ .has_cores = true, .cores_pct = 40 });
	assert_true(p.limit_pct == 60);
	refused(&empty, &p, 0, (struct promise_request){ .has_cores = true, .cores_pct = 70 },
		EINVAL, "cores_limit_pct (--cores-limit) 60 is less than cores_pct (--cores) 70");
}

static void test_shares(void **state)
{
	struct promise_card card = empty;
	card.promised_cores_pct = 70;
	struct promise_request r = { .has_cores = true, .cores_pct = 30 };
	decided(&card, NULL, 0, r);
	r.cores_pct = 30.5;
	refused(&card, NULL, 0, r, ENOSPC, "at most 30 % is possible");
	/* Unless the card may be overcommitted: then guarantees are scaled, and caps stay as requested. */
	card.may_overcommit = true;
	struct promise p = decided(&card, NULL, 0, r);
	assert_true(p.cores_pct == 30.5 && p.limit_pct == 30.5);
	r.cores_pct = -1;
	refused(&card, NULL, 0, r, EINVAL, "from 0 to 100");
	r.cores_pct = 101;
	refused(&card, NULL, 0, r, EINVAL, "from 0 to 100");
	r.cores_pct = NAN;
	refused(&card, NULL, 0, r, EINVAL, "from 0 to 100");
	r = (struct promise_request){ .has_limit = true, .limit_pct = 0 };
	refused(&card, NULL, 0, r, EINVAL, "cores_limit_pct (--cores-limit) 0");
	r.limit_pct = 100.1;
	refused(&card, NULL, 0, r, EINVAL, "cores_limit_pct (--cores-limit) 100.1");
}

static double in_force(const double *promised_pct, size_t users, size_t user, double cores_pct)
{
	return promise_in_force_pct(promise_user_most_pct(promised_pct, users), promised_pct[user],
				    cores_pct);
}

static void test_in_force(void **state)
{
	assert_true(in_force((double[]){ 100 }, 1, 0, 60) == 60);
	assert_true(in_force((double[]){ 20, 80 }, 2, 0, 20) == 20);
	/* One user's tenants share the card in proportion. */
	assert_true(fabs(in_force((double[]){ 120 }, 1, 0, 60) - 50) < 1e-9);
	assert_true(in_force((double[]){ 150 }, 1, 0, 0) == 0);
	/* Ten tenants of 100 % do not take another user's 50 %, and a small guarantee stays whole. */
	assert_true(fabs(in_force((double[]){ 50, 1000 }, 2, 0, 50) - 50) < 1e-9);
	assert_true(fabs(in_force((double[]){ 50, 1000 }, 2, 1, 100) - 5) < 1e-9);
	assert_true(fabs(in_force((double[]){ 10, 60, 300 }, 3, 0, 10) - 10) < 1e-9);
	assert_true(fabs(in_force((double[]){ 10, 60, 300 }, 3, 1, 60) - 45) < 1e-9);
	assert_true(fabs(in_force((double[]){ 10, 60, 300 }, 3, 2, 100) - 15) < 1e-9);
	assert_true(fabs(in_force((double[]){ 200, 200 }, 2, 1, 200) - 50) < 1e-9);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005U + 1442695040888963407U;
	return *state >> 33;
}

/* Guarantees in force sum to 100 %. Each user has at least an equal part, or all of a smaller promise. */
static void test_in_force_of_many_users(void **state)
{
	uint64_t random = 7;
	for (unsigned n = 0; n < 1000; n++) {
		double promised[16], sum = 0, in_force_sum = 0;
		size_t users = 1 + next_random(&random) % 16;
		for (size_t i = 0; i < users; i++)
			sum += promised[i] = (double)(next_random(&random) % 120);
		double most = promise_user_most_pct(promised, users);
		for (size_t i = 0; i < users; i++) {
			double own = promise_in_force_pct(most, promised[i], promised[i]);
			assert_true(own >= fmin(promised[i], 100 / (double)users) - 1e-9);
			in_force_sum += own;
		}
		assert_true(fabs(in_force_sum - fmin(sum, 100)) < 1e-6);
	}
}

static void test_memory(void **state)
{
	struct promise_card card = empty;
	struct promise_request r = { .has_memory = true, .memory_bytes = 8 * GIB };
	assert_true(decided(&card, NULL, 0, r).memory_given);
	r.memory_bytes = 8 * GIB + 1;
	refused(&card, NULL, 0, r, ENOSPC, "more than the GPU has");
	r.memory_bytes = 0;
	refused(&card, NULL, 0, r, EINVAL, "must be above 0");
	card.promised_bytes = 5 * GIB;
	r.memory_bytes = 4 * GIB;
	refused(&card, NULL, 0, r, ENOSPC, "at most 3 GiB (3072MiB) is unpromised");
	card.unpromised_held_bytes = 2 * GIB;
	r.memory_bytes = 2 * GIB;
	refused(&card, NULL, 0, r, ENOSPC, "1 GiB (1024MiB) is unpromised");
	card.promised_bytes = 8 * GIB;
	refused(&card, NULL, 0, (struct promise_request){ 0 }, ENOSPC, "none is left");
}

/* A tenant that waits may request up to the card's memory; its grants are promised to no other tenant. */
static void test_waiting(void **state)
{
	struct promise_card card = empty;
	struct promise_request r = { .waits = true, .has_memory = true, .memory_bytes = 8 * GIB };
	card.promised_bytes = 5 * GIB;
	card.granted_bytes = 2 * GIB;
	assert_int_equal(decided(&card, NULL, 0, r).quota_bytes, 8 * GIB);
	r.memory_bytes = 8 * GIB + 1;
	refused(&card, NULL, 0, r, ENOSPC, "more than the GPU has");
	r.memory_bytes = 4 * GIB;
	r.has_reserve = true;
	r.reserve_bytes = 4 * GIB + 1;
	refused(&card, NULL, 0, r, EINVAL, "at most memory_bytes (--memory) 4294967296 (4 GiB)");
	r.reserve_bytes = GIB;
	assert_int_equal(decided(&card, NULL, 0, r).reserve_bytes, GIB);
	refused(&card, NULL, 0, (struct promise_request){ .waits = true }, EINVAL,
		"memory_bytes (--memory): missing");
	r.waits = false;
	refused(&card, NULL, 0, r, EINVAL, "only with on_full 'wait'");
	r.has_reserve = false;
	refused(&card, NULL, 0, r, ENOSPC, "2 GiB are granted to tenants with on_full");
	card.kept_bytes = GIB;
	r.memory_bytes = 1;
	refused(&card, NULL, 0, r, ENOSPC, "3 GiB are granted");
	assert_int_equal(promise_unpromised_bytes(&card), 0);
}

/* The reserve never exceeds the quota, also after only the quota was lowered. */
static void test_reserve_follows_the_quota_down(void **state)
{
	struct promise now = { .memory_given = true,
			       .quota_bytes = 4 * GIB,
			       .reserve_bytes = 2 * GIB,
			       .limit_pct = 100 };
	struct promise_request r = { .waits = true, .has_memory = true, .memory_bytes = 3 * GIB };
	assert_int_equal(decided(&empty, &now, 0, r).reserve_bytes, 2 * GIB);
	r.memory_bytes = GIB;
	assert_int_equal(decided(&empty, &now, 0, r).reserve_bytes, GIB);
}

static void test_memory_held(void **state)
{
	struct promise now = { .memory_given = true, .quota_bytes = 4 * GIB, .limit_pct = 100 };
	struct promise_request r = { .has_memory = true, .memory_bytes = GIB };
	refused(&empty, &now, 2 * GIB, r, EBUSY, "at least 2 GiB (2048MiB) is needed");
	assert_int_equal(decided(&empty, &now, GIB, r).quota_bytes, GIB);
	/* A change of another value does not check memory. */
	decided(&empty, &now, 6 * GIB,
		(struct promise_request){ .has_cores = true, .cores_pct = 5 });
}

static void test_back_to_the_rest(void **state)
{
	struct promise now = { .memory_given = true, .quota_bytes = 4 * GIB, .limit_pct = 100 };
	struct promise_request r = { .has_memory = true, .memory_is_unpromised = true };
	struct promise p = decided(&empty, &now, 0, r);
	assert_false(p.memory_given);
	assert_int_equal(p.quota_bytes, 8 * GIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_asked),
		cmocka_unit_test(test_limit_follows_cores),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_in_force),
		cmocka_unit_test(test_in_force_of_many_users),
		cmocka_unit_test(test_memory_held),
		cmocka_unit_test(test_back_to_the_rest),
		cmocka_unit_test(test_reserve_follows_the_quota_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
