/* Two containers that want several cards each: what is found is all that can be, compared with every way to choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/fit/fit.h"

#define CARDS 6
#define ROUNDS 20000
#define MIB UINT64_C(1048576)

static uint64_t seed = 7;

static unsigned below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

static struct fit fit;
static struct place_card card[CARDS];
static struct inventory_use use[CARDS];
static struct request_part part[2];
static char uuid[CARDS][8];

static void random_card(unsigned i)
{
	snprintf(uuid[i], sizeof(uuid[i]), "c%u", i);
	card[i] = (struct place_card){ .uuid = uuid[i],
				       .type = "t",
				       .memory_total_bytes = 10 * MIB,
				       .memory_used_bytes = below(11) * MIB,
				       .cores_total_mpct = 100000,
				       .cores_used_mpct = below(5) * 25000,
				       .slots_total = 1 + below(3),
				       .slots_used = below(2),
				       .is_sick = !below(12) };
	use[i].mode = "m";
}

static void random_part(unsigned p)
{
	part[p] = (struct request_part){ .container = p };
	struct place_request *r = &part[p].place;
	r->count = 1 + below(3);
	r->memory = below(8) ? PLACE_MEMORY_BYTES : PLACE_MEMORY_ALL;
	r->memory_bytes = (1 + below(8)) * MIB;
	r->cores_mpct = below(6) ? below(4) * 25000 : PLACE_CORES_WHOLE_MPCT;
	r->evaluator[0] = below(2) ? "spread" : "binpack";
	r->evaluator_count = 1;
}

/* On a card, one after the other. */
static bool serves(unsigned i, bool first, bool second)
{
	struct place_card one = card[i];
	const bool wanted[] = { first, second };
	for (unsigned p = 0; p < 2; p++) {
		if (!wanted[p])
			continue;
		if (place_check_card(&one, &part[p].place) != PLACE_FITS)
			return false;
		struct place_need need = place_need(&one, &part[p].place);
		one.slots_used++;
		one.memory_used_bytes += need.memory_bytes;
		one.cores_used_mpct += need.cores_mpct;
	}
	return true;
}

static bool is_good(unsigned first, unsigned second)
{
	for (unsigned i = 0; i < CARDS; i++)
		if (!serves(i, first >> i & 1, second >> i & 1))
			return false;
	return true;
}

static bool can_be(void)
{
	for (unsigned first = 0; first < 1U << CARDS; first++)
		for (unsigned second = 0; second < 1U << CARDS; second++)
			if ((unsigned)__builtin_popcount(first) == part[0].place.count &&
			    (unsigned)__builtin_popcount(second) == part[1].place.count &&
			    is_good(first, second))
				return true;
	return false;
}

static void check_shares(const struct kube_shares *shares)
{
	unsigned chosen[2] = { 0, 0 };
	for (size_t s = 0; s < shares->count; s++) {
		unsigned i = (unsigned)(shares->share[s].card[1] - '0');
		unsigned *of = &chosen[shares->share[s].container];
		assert_false(*of >> i & 1);
		*of |= 1U << i;
	}
	for (unsigned p = 0; p < 2; p++)
		assert_int_equal(__builtin_popcount(chosen[p]), part[p].place.count);
	assert_true(is_good(chosen[0], chosen[1]));
}

static void test_against_every_way(void **state)
{
	const struct request request = { .containers = 2, .count = 2, .part = part };
	const struct inventory inventory = { .count = CARDS, .card = card, .use = use };
	unsigned possible = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct fit_reasons reasons;
		struct kube_shares shares = { 0 };
		for (unsigned i = 0; i < CARDS; i++)
			random_card(i);
		random_part(0);
		random_part(1);
		bool can = can_be();
		possible += can;
		fit_begin(&fit, &request);
		if (fit_check(&fit, &inventory, &reasons) != can)
			fail_msg("round %u: it can%s be", round, can ? "" : "not");
		if (!can) {
			assert_in_range(reasons.part - part, 0, 1);
			assert_int_not_equal(reasons.reason[0], PLACE_FITS);
		}
		/* And what filter lets through is bound. */
		assert_int_equal(fit_choose(&fit, &inventory, &shares, &reasons) == 0, can);
		if (can)
			check_shares(&shares);
		shares_free(&shares);
	}
	assert_in_range(possible, ROUNDS / 10, ROUNDS * 9 / 10);
}

/* The first takes what the second could do without, where each by its policy would take the largest. */
static void test_the_larger_ones_are_left(void **state)
{
	static const unsigned free_mib[CARDS] = { 4, 3, 3, 6, 0, 0 };
	const struct request request = { .containers = 2, .count = 2, .part = part };
	const struct inventory inventory = { .count = CARDS, .card = card, .use = use };
	struct fit_reasons reasons;
	struct kube_shares shares;
	for (unsigned i = 0; i < CARDS; i++) {
		random_card(i);
		card[i].is_sick = false;
		card[i].memory_used_bytes = (10 - free_mib[i]) * MIB;
		card[i].slots_total = 9;
		card[i].cores_used_mpct = 0;
	}
	for (unsigned p = 0; p < 2; p++) {
		random_part(p);
		part[p].place.count = 2;
		part[p].place.memory = PLACE_MEMORY_BYTES;
		part[p].place.memory_bytes = (3 + p) * MIB;
		part[p].place.cores_mpct = 10000;
		part[p].place.evaluator[0] = "spread";
	}
	fit_begin(&fit, &request);
	assert_true(fit_check(&fit, &inventory, &reasons));
	assert_int_equal(fit_choose(&fit, &inventory, &shares, &reasons), 0);
	check_shares(&shares);
	shares_free(&shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_every_way),
		cmocka_unit_test(test_the_larger_ones_are_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
