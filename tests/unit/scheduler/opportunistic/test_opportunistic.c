/* Who fills what others leave: what it finds of a card, when it goes and who goes, by plain figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "scheduler/opportunistic/opportunistic.h"

#define S UINT64_C(1000000000)
#define NOW (1000 * S)

static uint64_t taken(uint64_t guaranteed, uint64_t borrowed, struct use_card use)
{
	const struct opportunistic_card card = { 100, guaranteed, borrowed, &use };
	return opportunistic_taken_pct(&card, NOW);
}

static struct use_card used(uint16_t peak, uint16_t now, uint16_t held)
{
	return (struct use_card){
		.is_reported = true, .peak_pct = peak, .now_pct = now, .held_pct = held
	};
}

static void test_what_is_taken(void **state)
{
	/* What nobody measures is used. */
	assert_int_equal(
		opportunistic_taken_pct(&(struct opportunistic_card){ 100, 80, 15, NULL }, NOW), 95);
	/* The use with a margin, never more than was promised by it. */
	assert_int_equal(taken(80, 0, used(30, 0, 80)), 40);
	assert_int_equal(taken(80, 20, used(30, 0, 80)), 60);
	assert_int_equal(taken(80, 0, used(75, 0, 80)), 80);
	assert_int_equal(taken(80, 0, used(80, 0, 80)), 80);
	/* More than that is used: it is so. */
	assert_int_equal(taken(80, 0, used(95, 0, 80)), 95);
	assert_int_equal(taken(0, 40, used(95, 0, 0)), 135);
	/* Nobody is there. */
	assert_int_equal(taken(0, 0, used(0, 0, 0)), 0);
	/* Who has come since is there with all that it may use. */
	assert_int_equal(taken(80, 0, used(0, 0, 50)), 40);
	assert_int_equal(taken(80, 0, used(0, 0, 0)), 80);
	/* Who has gone since is there still. */
	assert_int_equal(taken(30, 0, used(75, 0, 80)), 80);
	/* Opportunistic pods were sent from it a moment ago. */
	struct use_card cooldown = used(0, 0, 80);
	cooldown.cooldown_ns = NOW + 1;
	assert_int_equal(taken(80, 0, cooldown), 100);
	cooldown.cooldown_ns = NOW;
	assert_int_equal(taken(80, 0, cooldown), 10);
}

static uint64_t lack(uint64_t borrowed, struct use_card use)
{
	return opportunistic_shortfall_pct(&(struct opportunistic_card){ 100, 80, borrowed, &use });
}

static void test_what_is_lacking(void **state)
{
	assert_int_equal(lack(20, used(0, 80, 80)), 0);
	assert_int_equal(lack(20, used(0, 82, 80)), 0); /* no measurement is so exact */
	assert_int_equal(lack(20, used(0, 83, 80)), 1);
	assert_int_equal(lack(60, used(0, 80, 80)), 38);
	assert_int_equal(lack(60, used(99, 10, 80)), 0); /* a peak takes nothing now */
	assert_int_equal(lack(20, used(0, 300, 80)), 18);
	assert_int_equal(
		opportunistic_shortfall_pct(&(struct opportunistic_card){ 100, 80, 60, NULL }), 0);
}

static void test_it_has_to_last(void **state)
{
	struct use_card use = { 0 };
	assert_false(opportunistic_is_due(&use, 20, 5 * S, 60 * S));
	assert_false(opportunistic_is_due(&use, 20, 64 * S, 60 * S));
	assert_true(opportunistic_is_due(&use, 1, 65 * S, 60 * S));
	/* A moment of enough begins it anew. */
	assert_false(opportunistic_is_due(&use, 0, 66 * S, 60 * S));
	assert_false(opportunistic_is_due(&use, 20, 67 * S, 60 * S));
	assert_false(opportunistic_is_due(&use, 20, 126 * S, 60 * S));
	assert_true(opportunistic_is_due(&use, 20, 127 * S, 60 * S));
}

static void test_longer_each_time(void **state)
{
	static const uint64_t minutes[] = { 10, 20, 40, 80, 160, 240, 240, 240 };
	struct use_card use = { 0 };
	uint64_t now_ns = NOW;
	for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
		opportunistic_cooldown(&use, now_ns);
		assert_int_equal(use.cooldown_ns - now_ns, minutes[i] * 60 * S);
		now_ns = use.cooldown_ns + 300 * S;
	}
	/* Half a day without: forgiven. */
	now_ns = use.cooldown_ns + OPPORTUNISTIC_FORGIVE_NS;
	opportunistic_cooldown(&use, now_ns);
	assert_int_equal(use.cooldown_ns - now_ns, OPPORTUNISTIC_COOLDOWN_NS);
	/* However often. */
	for (int i = 0; i < 1000; i++)
		opportunistic_cooldown(&use, now_ns += S);
	assert_int_equal(use.cooldown_ns - now_ns, OPPORTUNISTIC_COOLDOWN_MOST_NS);
}

/* Of opportunistic pods { priority, since, borrowed }, named by their place: a bit for each that goes. */
static unsigned gone(const struct opportunistic *from, size_t count, uint64_t shortfall_pct)
{
	struct opportunistic list[8];
	unsigned bits = 0;
	for (size_t i = 0; i < count; i++) {
		list[i] = from[i];
		list[i].pod = (void *)(uintptr_t)i;
	}
	size_t chosen = opportunistic_choose(list, count, shortfall_pct);
	for (size_t i = 0; i < count; i++)
		bits |= (unsigned)list[i].is_victim << (uintptr_t)list[i].pod;
	assert_int_equal(chosen, __builtin_popcount(bits));
	return bits;
}

static void test_who_goes(void **state)
{
	const struct opportunistic like[] = { { 0, 100, 20 }, { 0, 300, 20 }, { 0, 200, 20 } };
	/* The youngest, and no more than it takes. */
	assert_int_equal(gone(like, 3, 1), 2);
	assert_int_equal(gone(like, 3, 20), 2);
	assert_int_equal(gone(like, 3, 21), 2 | 4);
	assert_int_equal(gone(like, 3, 60), 7);
	assert_int_equal(gone(like, 3, 100), 7);
	/* The lowest priority goes first, however old it is. */
	const struct opportunistic ranks[] = { { 5, 300, 20 }, { -5, 100, 20 }, { 0, 200, 20 } };
	assert_int_equal(gone(ranks, 3, 20), 2);
	assert_int_equal(gone(ranks, 3, 40), 2 | 4);
	/* Who is not needed after all stays: the second frees enough by itself, and the first the most. */
	const struct opportunistic sizes[] = { { 0, 200, 10 }, { 0, 100, 30 } };
	assert_int_equal(gone(sizes, 2, 10), 1);
	assert_int_equal(gone(sizes, 2, 25), 2);
	assert_int_equal(gone(sizes, 0, 25), 0);
}

/*
 * A card whose use goes up and down, from each minute to each half a day: opportunistic pods come whenever there is room, and are sent
 * away whenever they lack. Over a week they are sent as often as the rule says at most.
 */
static void test_no_to_and_fro(void **state)
{
	static const unsigned periods_s[] = { 60, 130, 300, 600, 1300, 3600, 7000, 20000, 43200 };
	const uint64_t week_s = 7 * 86400;
	for (size_t i = 0; i < sizeof(periods_s) / sizeof(periods_s[0]); i++) {
		struct use_card use = used(0, 0, 80);
		unsigned borrowed = 0, sent = 0, came = 0;
		for (uint64_t t = 1; t < week_s; t++) {
			unsigned now = t % periods_s[i] < periods_s[i] / 2 ? 0 : 80;
			use.now_pct = (uint16_t)now;
			/* A peak of the last minutes. */
			use.peak_pct = (uint16_t)(t % periods_s[i] < 300 || now ? 80 : 0);
			struct opportunistic_card card = { 100, 80, borrowed, &use };
			while (opportunistic_taken_pct(&card, t * S) + 20 <= 100) {
				card.borrowed_pct = borrowed += 20;
				came++;
			}
			if (!opportunistic_is_due(&use, opportunistic_shortfall_pct(&card), t * S,
						  60 * S))
				continue;
			struct opportunistic list[5];
			for (unsigned k = 0; k < borrowed / 20; k++)
				list[k] = (struct opportunistic){ .borrowed_pct = 20 };
			size_t gone_now = opportunistic_choose(list, borrowed / 20,
							       opportunistic_shortfall_pct(&card));
			borrowed -= 20 * (unsigned)gone_now;
			sent++;
			opportunistic_cooldown(&use, t * S);
			assert_true(borrowed + now <= 100 + OPPORTUNISTIC_SLACK_PCT);
		}
		print_message("up and down each %u s: %u came, sent away %u times in a week\n",
			      periods_s[i], came, sent);
		/* 10, 20, 40, 80, 160 minutes, then four hours each. */
		assert_true(sent <= 6 + week_s / (4 * 3600));
		/* One has what is promised to nobody; lulls of less than the window invite no more. */
		assert_int_equal(came > 1, periods_s[i] > 600);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_taken),  cmocka_unit_test(test_what_is_lacking),
		cmocka_unit_test(test_it_has_to_last), cmocka_unit_test(test_longer_each_time),
		cmocka_unit_test(test_who_goes),       cmocka_unit_test(test_no_to_and_fro),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
