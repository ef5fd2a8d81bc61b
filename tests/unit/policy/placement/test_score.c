/* HAMi's scores: the worked figures of its documentation, to the last digit. */
#include "layouts.h"

#include "policy/placement/score.h"

/* Four cards of 100 % and 8,192 MiB, this many of them in use, with this use in all. */
static struct place_node four_cards(unsigned used, uint32_t cores_mpct, uint64_t bytes)
{
	struct place_node node = { .card_count = 4 };

	for (unsigned i = 0; i < 4; i++) {
		node.card[i] = (struct place_card){ .memory_total_bytes = 8192 * MIB,
						    .cores_total_mpct = 100000,
						    .slots_total = 10 };
		if (i >= used)
			continue;
		node.card[i].slots_used = 1;
		node.card[i].cores_used_mpct = cores_mpct / used;
		node.card[i].memory_used_bytes = bytes / used;
	}
	/* Amounts that do not divide evenly. */
	node.card[0].memory_used_bytes += bytes - bytes / used * used;
	return node;
}

static void of_nodes(void **state)
{
	struct place_node first = four_cards(3, 240000, 20480 * MIB);
	struct place_node second = four_cards(2, 120000, 8192 * MIB);

	assert_true(place_cards_score(first.card, first.card_count) == 19.75);
	assert_true(place_cards_score(second.card, second.card_count) == 10.50);
	assert_true(place_cards_score(NULL, 0) == 0);
}

static void of_cards(void **state)
{
	struct place_request request = { .count = 1,
					 .memory_bytes = 1000 * MIB,
					 .cores_mpct = 20000 };
	struct place_card card = { .memory_total_bytes = 8000 * MIB,
				   .cores_total_mpct = 100000,
				   .slots_total = 10 };
	struct place_card other = card;

	card.slots_used = 2;
	card.cores_used_mpct = 10000;
	card.memory_used_bytes = 2000 * MIB;
	other.slots_used = 6;
	other.cores_used_mpct = 70000;
	other.memory_used_bytes = 6000 * MIB;
	assert_true(place_card_score(&card, &request) == 9.75);
	assert_true(place_card_score(&other, &request) == 24.75);

	/* And so binpack takes the second, spread the first. */
	struct place_node node = { .card_count = 2, .card = { card, other } };
	struct place_choice choice;
	for (unsigned i = 0; i < 2; i++)
		node.card[i].type = node.card[i].uuid = i ? "b" : "a";
	request.policy = PLACE_POLICY_BINPACK;
	assert_int_equal(place_choose(&node, &request, &choice), 0);
	assert_int_equal(choice.card[0], 1);
	request.policy = PLACE_POLICY_SPREAD;
	assert_int_equal(place_choose(&node, &request, &choice), 0);
	assert_int_equal(choice.card[0], 0);
}

static void of_links(void **state)
{
	static const unsigned scores[PLACE_LEVEL_COUNT] = { 0, 10, 20, 30, 40, 50, 60 };

	for (unsigned l = 0; l < PLACE_LEVEL_COUNT; l++)
		assert_int_equal(place_link_score((struct place_link){ 0, l }), scores[l]);
	assert_int_equal(place_link_score((struct place_link){ 12, PLACE_LEVEL_SYS }), 1210);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(of_nodes), cmocka_unit_test(of_cards),
					    cmocka_unit_test(of_links) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
