/* How many sets are examined: every set of 16 cards, and no more than the bound for more cards. */
#include "layouts.h"

#include <time.h>

/* A node of `count` cards in pairs, fours and eights, with random NVLinks on top. */
static struct place_node big_node(unsigned count, uint64_t *random)
{
	struct place_node node = { .card_count = count };

	for (unsigned i = 0; i < count; i++) {
		node.card[i] = (struct place_card){ .uuid = "u",
						    .type = "t",
						    .memory_total_bytes = 80 * GIB,
						    .cores_total_mpct = 100000,
						    .slots_total = 10 };
		for (unsigned j = 0; j < i; j++) {
			unsigned bits = i ^ j;
			place_node_link(
				&node, i, j,
				(struct place_link){
					.nvlinks = (uint8_t)(random_between(random, 0, 3)
								     ? 0
								     : random_between(random, 1, 4)),
					.level = bits < 2   ? PLACE_LEVEL_PIX
						 : bits < 4 ? PLACE_LEVEL_PXB
						 : bits < 8 ? PLACE_LEVEL_NODE
							    : PLACE_LEVEL_SYS });
		}
	}
	return node;
}

static void counts_of_sets(void **state)
{
	assert_int_equal(place_sets_count(8, 4, 1000), 70);
	assert_int_equal(place_sets_count(16, 8, PLACE_SETS_MOST), 12870);
	assert_int_equal(place_sets_count(16, 16, PLACE_SETS_MOST), 1);
	assert_int_equal(place_sets_count(64, 1, PLACE_SETS_MOST), 64);
	assert_int_equal(place_sets_count(24, 8, PLACE_SETS_MOST), PLACE_SETS_MOST + 1);
	assert_int_equal(place_sets_count(64, 32, PLACE_SETS_MOST), PLACE_SETS_MOST + 1);
}

static void sixteen(void **state)
{
	uint64_t random = 7, most = 0;
	struct place_node node = big_node(16, &random);

	for (unsigned count = 1; count <= 16; count++) {
		struct place_request request = { .count = count, .cores_mpct = 10000 };
		struct place_choice choice;
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		assert_int_equal(place_choose(&node, &request, &choice), 0);
		clock_gettime(CLOCK_MONOTONIC, &to);
		assert_true(choice.is_best);
		assert_int_equal(choice.sets_seen, place_sets_count(16, count, UINT32_MAX));
		if (choice.sets_seen < most)
			continue;
		most = choice.sets_seen;
		print_message("%u of 16 cards: %llu sets, %.0f us\n", count,
			      (unsigned long long)choice.sets_seen,
			      (double)(to.tv_sec - from.tv_sec) * 1e6 +
				      (double)(to.tv_nsec - from.tv_nsec) / 1e3);
	}
	assert_int_equal(most, 12870);
}

static void many(void **state)
{
	uint64_t random = 11;

	for (unsigned cards = 24; cards <= 64; cards += 8) {
		struct place_node node = big_node(cards, &random);
		for (unsigned count = 1; count <= cards; count++) {
			struct place_request request = { .count = count, .cores_mpct = 10000 };
			struct place_choice choice;
			assert_int_equal(place_choose(&node, &request, &choice), 0);
			assert_int_equal(choice.count, count);
			/* The last growth and exchange begin below the bound. */
			assert_true(choice.sets_seen < PLACE_SETS_MOST + 2u * cards * cards);
		}
	}
}

/* Growing and exchanging within the bound, held against all of the 134,596 sets of 6 among 24 cards. */
static void nearly_the_best(void **state)
{
	uint64_t random = 13;
	unsigned same = 0, all = 0;
	double worst = 1;

	for (; all < 40; all++) {
		struct place_node node = big_node(24, &random);
		struct place_request request = { .count = 6, .cores_mpct = 10000 };
		struct place_pool pool = { .from_count = 24 };
		struct place_costs costs;
		for (unsigned i = 0; i < 24; i++)
			pool.from[i] = i;
		place_costs_fill(&costs, &node, &request);
		struct place_set best = place_best_set(&costs, &pool, 6, UINT32_MAX);
		struct place_set near = place_best_set(&costs, &pool, 6, PLACE_SETS_MOST);
		assert_true(best.is_best && best.sets_seen == 134596);
		assert_false(near.is_best);
		assert_true(place_cost_compare(&costs, &best.cost, &near.cost) <= 0);
		double part = (double)near.cost.by[0] / (double)best.cost.by[0];
		worst = part < worst ? part : worst;
		same += place_cost_compare(&costs, &best.cost, &near.cost) == 0;
	}
	print_message("6 of 24 cards: %u of %u the best, the worst has %.3f of its links\n", same,
		      all, worst);
	assert_true(worst > 0.8);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(counts_of_sets),
					    cmocka_unit_test(sixteen), cmocka_unit_test(many),
					    cmocka_unit_test(nearly_the_best) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
