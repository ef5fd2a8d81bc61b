/*
 * Which tenants' memory is on the cards, in random scenes (seeds printed). Sizes, loads and speeds differ; tenants grow, refuse
 * to move, start and end, on one card or on several. A card's memory is never exceeded, and no tenant waits longer than the
 * header states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "../lease/scenes.h"
#include "swap_schedule_model.h"

static unsigned random_cards(unsigned of)
{
	return of == 1 ? 1 : 1 + (unsigned)model_random((1U << of) - 1);
}

/* Whether this much more fits on all of the cards. */
static bool fits(unsigned cards, uint64_t more)
{
	for (unsigned card = 0; card < CARDS; card++)
		if (cards & 1U << card && model_held(card) + more > m.capacity[card])
			return false;
	return true;
}

static void add_at_first(unsigned of)
{
	uint64_t rest = model_random(3) ? model_random(20 * S) : 0;
	uint64_t size = GIB + model_random(70 * GIB);
	unsigned cards = random_cards(of);

	int i = model_add(cards, size, 100 * MS + model_random(10 * S), rest,
			  fits(cards, size + TENANTS * GIB / 2));
	m.t[i].weight = model_random(2) ? (double)model_random(100) : 0;
}

/* Grows by an allocation, up to its largest size. */
static bool grow(struct model_tenant *t)
{
	unsigned card = (unsigned)model_random(CARDS);

	if (!(t->cards & 1U << card) || t->wanted[card] || t->movable[card] >= 80 * GIB)
		return false;
	t->wanted[card] = GIB + model_random(10 * GIB);
	return true;
}

/* The tenant ends, and another starts, if its context fits. */
static void replace(int i, unsigned of)
{
	unsigned cards = random_cards(of);

	swap_schedule_remove(&m.r, i);
	m.t[i].is_there = false;
	for (int more = 0; more < 100 && !fits(cards, GIB); more++)
		model_tick();
	if (fits(cards, GIB))
		model_add(cards, GIB + model_random(70 * GIB), 100 * MS + model_random(10 * S),
			  model_random(20 * S), false);
}

static void scene(uint64_t seed, unsigned of)
{
	model_start(100 * GIB, 1, seed * 0x9e3779b97f4a7c15ULL | 1);
	m.rate = 1e9 * (double)(5 + model_random(60));
	m.refuse_in = model_random(2) ? 0 : 10;
	unsigned count = 2 + (unsigned)model_random(TENANTS - 1);
	for (unsigned i = 0; i < count; i++)
		add_at_first(of);
	for (int part = 0; part < 10; part++) {
		model_run(60 * S);
		int i = (int)model_random(TENANTS);
		if (m.t[i].is_there && !(model_random(2) && grow(&m.t[i])))
			replace(i, of);
	}
}

static void scenes(unsigned of)
{
	uint64_t orders = 0;
	double worst = 0;

	for (uint64_t seed = 1; seed <= SCENES(700); seed++) {
		scene(seed, of);
		if (!model_was_within())
			fail_msg("seed %u: more held than a card has", (unsigned)seed);
		for (int i = 0; i < TENANTS; i++) {
			double part = (double)m.t[i].longest_wait / (double)m.bound_ns;
			if (m.t[i].is_there && part > 1)
				fail_msg("seed %u: tenant %d waited %.1f s, bound %.1f",
					 (unsigned)seed, i, (double)m.t[i].longest_wait / 1e9,
					 (double)m.bound_ns / 1e9);
			worst = m.t[i].is_there && part > worst ? part : worst;
		}
		orders += m.r.orders;
	}
	printf("%u cards: %u scenes of 600 s: %u orders to leave, the longest wait %.2f of its "
	       "bound\n",
	       of, SCENES(700), (unsigned)orders, worst);
	assert_true(orders > 1000);
}

static void test_one_card(void **state)
{
	scenes(1);
}

static void test_several_cards(void **state)
{
	scenes(CARDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_card),
		cmocka_unit_test(test_several_cards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
