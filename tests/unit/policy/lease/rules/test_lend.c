/* The elastic policy by itself: tenants that are nothing but figures, a period at a time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/lease/rules/lend.h"

#define PERIOD_NS UINT64_C(250000000)
#define MOST 4

/* Tenants with a fixed demand. In each period a tenant gets what its limit allows, and the owners come first. */
struct card {
	struct lend_config config;
	struct lend_tenant tenant[MOST];
	double demand_pct[MOST];
	size_t count;
};

/* Slow ones, so that each step of the rules shows. */
static struct card make_card(void)
{
	struct card card = { .config = lend_default_config() };

	card.config.period_ns = PERIOD_NS;
	card.config.fade_ns = 4 * PERIOD_NS;
	card.config.step_pct = 10;
	return card;
}

static struct lend_tenant *add(struct card *card, double cores, double limit, bool may_borrow)
{
	struct lend_tenant *t = &card->tenant[card->count++];

	*t = (struct lend_tenant){ .cores_pct = cores, .limit_pct = limit, .may_borrow = may_borrow };
	return t;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static void run(struct card *card, unsigned periods)
{
	struct lend_tenant *list[MOST];

	for (size_t i = 0; i < card->count; i++)
		list[i] = &card->tenant[i];
	for (unsigned p = 0; p < periods; p++) {
		double left = 100;

		for (size_t i = 0; i < card->count; i++)
			left -= least(card->demand_pct[i], card->tenant[i].cores_pct);
		for (size_t i = 0; i < card->count; i++) {
			struct lend_tenant *t = list[i];
			double demand = card->demand_pct[i];
			double got = least(demand, t->cores_pct);
			double limit = t->known ? t->limit_now_pct : t->limit_pct;
			double more = least(left, least(demand, limit) - got);

			if (more > 0) {
				got += more;
				left -= more;
			}
			t->charged_ns += (uint64_t)(got / 100 * (double)PERIOD_NS);
			t->waited_ns += (uint64_t)((demand - got) / 100 * (double)PERIOD_NS);
		}
		lend_decide(&card->config, list, card->count, PERIOD_NS);
	}
}

static void assert_near(double value, double wanted, double slack)
{
	if (!(fabs(value - wanted) <= slack))
		fail_msg("%g is not %g +- %g", value, wanted, slack);
}

static void test_lends_what_is_unused(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true), *b = add(&card, 30, 30, true);

	card.demand_pct[0] = 100;
	run(&card, 1);
	assert_near(a->limit_now_pct, 30, 0); /* nothing was seen yet */
	run(&card, 1);
	assert_near(a->limit_now_pct, 40, 1e-9); /* a step */
	assert_int_equal(a->reason, LEND_LENT);
	run(&card, 30);
	/* 40 % are unpromised; a tenth of b's 30 % is kept for b. */
	assert_near(a->limit_now_pct, 97, LEND_BAND_PCT);
	assert_near(b->spare_pct, 27, 1e-9);
	assert_near(b->limit_now_pct, 30, 0);
	assert_int_equal(b->reason, LEND_UNNEEDED);
}

static void test_takes_it_back(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true), *b = add(&card, 30, 30, false);

	card.demand_pct[0] = 100;
	run(&card, 40);
	card.demand_pct[1] = 100;
	run(&card, 1);
	assert_near(b->spare_pct, 0, 0); /* seen at once */
	assert_int_equal(a->reason, LEND_RECLAIMED);
	run(&card, 10);
	assert_near(a->limit_now_pct, 70, LEND_BAND_PCT);
	assert_near(b->limit_now_pct, 30, 0); /* it may not borrow */
	assert_int_equal(b->reason, LEND_OFF);
}

static void test_fades(void **state)
{
	struct card card = make_card();
	struct lend_tenant *b;

	add(&card, 60, 60, true);
	b = add(&card, 40, 40, false);
	card.demand_pct[0] = card.demand_pct[1] = 100;
	run(&card, 20);
	card.demand_pct[1] = 0;
	run(&card, 2);
	assert_near(b->spare_pct, 40 * (1 - exp(-0.5)) * 0.9, 0.01); /* half a second after */
	run(&card, 40);
	assert_near(b->spare_pct, 36, 0.1);
}

/* A tenant that computes for a moment now and then does not make the other's limit jump. */
static void test_short_bursts_do_not_shake(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 50, 50, true);
	double low = 100, high = 0;

	add(&card, 50, 50, false);
	card.demand_pct[0] = 100;
	for (unsigned i = 0; i < 80; i++) {
		card.demand_pct[1] = i % 2 ? 30 : 0;
		run(&card, 1);
		if (i < 20)
			continue;
		low = fmin(low, a->limit_now_pct);
		high = fmax(high, a->limit_now_pct);
	}
	assert_true(high - low < 10); /* of the 30 that come and go */
	assert_true(low > 60);
	/* The time that the other tenant used in its bursts stays reserved for it. */
	assert_true(high <= 100 - 0.8 * 30);
}

static void test_is_shared_by_guarantee(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 10, 10, true), *b = add(&card, 30, 30, true);

	card.demand_pct[0] = card.demand_pct[1] = 100;
	run(&card, 40);
	assert_near(a->limit_now_pct, 25, LEND_BAND_PCT);
	assert_near(b->limit_now_pct, 75, LEND_BAND_PCT);
}

/* The time that one tenant does not need goes to the other. */
static void test_modest_borrower(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true), *b = add(&card, 30, 30, true);

	card.demand_pct[0] = 40;
	card.demand_pct[1] = 100;
	run(&card, 60);
	assert_near(a->limit_now_pct, 40 * LEND_HEADROOM + LEND_HEADROOM_PCT, LEND_BAND_PCT);
	assert_near(b->limit_now_pct, 51, LEND_BAND_PCT);
	card.demand_pct[0] = 10;
	run(&card, 60);
	assert_near(a->limit_now_pct, 30, 0);
	assert_int_equal(a->reason, LEND_UNNEEDED);
	assert_near(b->limit_now_pct, 70 + 0.9 * 20, LEND_BAND_PCT);
}

static void test_most(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true), *b = add(&card, 50, 50, true);

	card.config.most_pct = 45;
	card.demand_pct[0] = card.demand_pct[1] = 100;
	run(&card, 40);
	assert_near(a->limit_now_pct, 45, LEND_BAND_PCT);
	assert_true(a->limit_now_pct <= 45);
	assert_near(b->limit_now_pct, 50, 0); /* its own cap is more already */
}

static void test_alone_without_reserve(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true);

	card.demand_pct[0] = 100;
	run(&card, 40);
	assert_near(a->limit_now_pct, 100, 0);
}

/* For any cap, the result is never even slightly above the arbiter's largest limit. */
static void test_fractions(void **state)
{
	for (unsigned hundredths = 1; hundredths < 10000; hundredths += 7) {
		struct card card = make_card();
		double cores = (double)hundredths / 100;
		struct lend_tenant *a = add(&card, cores, cores, true);

		card.demand_pct[0] = 100;
		run(&card, 15);
		assert_true(a->limit_now_pct <= 100);
		assert_true(a->limit_now_pct > 99.99);
	}
}

static void test_absent_owner(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true), *b = add(&card, 70, 70, true);

	card.demand_pct[0] = card.demand_pct[1] = 100;
	b->absent = true; /* paused: its threads wait, but not for the card */
	run(&card, 40);
	assert_near(a->limit_now_pct, 93, LEND_BAND_PCT);
}

static void test_without_guarantee(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true), *b = add(&card, 0, 100, false);

	card.demand_pct[0] = card.demand_pct[1] = 100;
	run(&card, 40);
	assert_near(a->limit_now_pct, 30, 0); /* the 70 are in use */
	card.demand_pct[1] = 20;
	run(&card, 40);
	assert_near(a->limit_now_pct, 75, LEND_BAND_PCT);
	assert_near(b->limit_now_pct, 100, 0);
}

static void test_promised_twice(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 80, 80, true), *b = add(&card, 80, 80, true);

	card.demand_pct[0] = 100;
	run(&card, 40);
	/* 80 of 160 are a half; a tenth of b's is kept. */
	assert_near(b->spare_pct, 45, 0.1);
	assert_near(a->limit_now_pct, 100, 0);
}

static void test_switched_off(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true);

	card.demand_pct[0] = 100;
	run(&card, 40);
	a->may_borrow = false;
	run(&card, 1);
	assert_near(a->limit_now_pct, 30, 0); /* at once */
	assert_int_equal(a->reason, LEND_OFF);
}

static void test_bounds_hold(void **state)
{
	struct card card = make_card();
	uint64_t chance = 7;
	double before[MOST];

	add(&card, 20, 20, true);
	add(&card, 40, 40, true);
	add(&card, 5, 60, false);
	add(&card, 0, 100, false);
	run(&card, 1);
	for (unsigned n = 0; n < 20000; n++) {
		for (size_t i = 0; i < MOST; i++) {
			chance = chance * 6364136223846793005ULL + 1442695040888963407ULL;
			if (chance >> 60 == 0)
				card.demand_pct[i] = (double)(chance >> 32 & 127) - 13;
			card.demand_pct[i] = fmax(0, fmin(100, card.demand_pct[i]));
			/* Figures that can't be: a jump, and one back. */
			if (chance >> 54 == 1)
				card.tenant[i].charged_ns = chance;
			before[i] = card.tenant[i].limit_now_pct;
		}
		run(&card, 1);
		for (size_t i = 0; i < MOST; i++) {
			const struct lend_tenant *t = &card.tenant[i];

			assert_true(t->limit_now_pct >= t->limit_pct);
			assert_true(t->limit_now_pct <= fmax(t->limit_pct, card.config.most_pct));
			assert_true(fabs(t->limit_now_pct - before[i]) <=
				    card.config.step_pct + 1e-9);
			assert_true(t->spare_pct >= 0 && t->spare_pct <= t->cores_pct);
			assert_true(t->demand_pct >= 0 && t->demand_pct <= 100);
		}
	}
}

static void test_reset(void **state)
{
	struct card card = make_card();
	struct lend_tenant *a = add(&card, 30, 30, true);

	card.demand_pct[0] = 100;
	run(&card, 40);
	a->cores_pct = a->limit_pct = 50;
	lend_reset(a);
	assert_near(a->limit_now_pct, 50, 0);
	run(&card, 1);
	assert_near(a->limit_now_pct, 60, 1e-9);
	assert_string_equal(lend_reason_name(a->reason), "lent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lends_what_is_unused),
		cmocka_unit_test(test_takes_it_back),
		cmocka_unit_test(test_fades),
		cmocka_unit_test(test_short_bursts_do_not_shake),
		cmocka_unit_test(test_is_shared_by_guarantee),
		cmocka_unit_test(test_modest_borrower),
		cmocka_unit_test(test_most),
		cmocka_unit_test(test_alone_without_reserve),
		cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_absent_owner),
		cmocka_unit_test(test_without_guarantee),
		cmocka_unit_test(test_promised_twice),
		cmocka_unit_test(test_switched_off),
		cmocka_unit_test(test_bounds_hold),
		cmocka_unit_test(test_reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
