/* Which card each evaluator prefers, by name and in chains. */
#include "layouts.h"

static unsigned choose_by(const struct place_node *node, struct place_request request,
			  const char *first, const char *second)
{
	struct place_choice choice;
	unsigned set = 0;

	request.evaluator[0] = first;
	request.evaluator[1] = second;
	request.evaluator_count = second ? 2 : 1;
	assert_int_equal(place_choose(node, &request, &choice), 0);
	for (unsigned i = 0; i < choice.count; i++)
		set |= 1u << choice.card[i];
	return set;
}

static void use(struct place_card *card, uint32_t cores_pct, uint64_t bytes)
{
	card->slots_used++;
	card->cores_used_mpct += cores_pct * 1000;
	card->memory_used_bytes += bytes;
}

static void names(void **state)
{
	assert_true(place_evaluator_exists("link"));
	assert_false(place_evaluator_exists("Link"));
}

static void link_and_fragment(void **state)
{
	struct place_node node = layout_node("pcie");
	struct place_request whole = { .count = 1, .memory = PLACE_MEMORY_ALL, .cores_mpct = 100000 };
	struct place_request two = whole;

	two.count = 2;
	use(&node.card[0], 100, node.card[0].memory_total_bytes);
	/* Card 1 lost its fellow already. */
	assert_int_equal(choose_by(&node, whole, "fragment", NULL), 1u << 1);
	/* Nearest pairs are many: that of the socket which is broken already. */
	assert_int_equal(choose_by(&node, two, "link", "fragment"), 3u << 2);
}

static void share_and_fragment(void **state)
{
	struct place_node node = layout_node("pcie");
	struct place_request part = { .count = 1, .memory_bytes = 8 * GIB, .cores_mpct = 20000 };

	/* Of two cards in use, the fuller one; and both before an unused one. */
	use(&node.card[3], 40, 16 * GIB);
	use(&node.card[5], 60, 24 * GIB);
	assert_int_equal(choose_by(&node, part, "share", NULL), 1u << 5);
	/* A card in use breaks up nothing: the first of them. */
	assert_int_equal(choose_by(&node, part, "fragment", NULL), 1u << 3);
	/* There is time for it on card 5, and memory for others behind it; on card 3 no memory then. */
	use(&node.card[3], 20, 12 * GIB);
	use(&node.card[5], 10, 0);
	assert_int_equal(choose_by(&node, part, "share", NULL), 1u << 3);
}

static void capacity_and_balance(void **state)
{
	struct place_node node = layout_node("mixed");
	struct place_request part = { .count = 1, .memory_bytes = 4 * GIB, .cores_mpct = 10000 };

	for (unsigned i = 0; i < 8; i++)
		use(&node.card[i], 50, node.card[i].memory_total_bytes / 2);
	node.card[2].memory_used_bytes -= GIB;
	node.card[2].cores_used_mpct += 20000;
	assert_int_equal(choose_by(&node, part, "capacity", NULL), 1u << 2);
	node.card[6].cores_used_mpct -= 10000;
	node.card[6].memory_used_bytes -= 4 * GIB;
	assert_int_equal(choose_by(&node, part, "balance", NULL), 1u << 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names),
					    cmocka_unit_test(link_and_fragment),
					    cmocka_unit_test(share_and_fragment),
					    cmocka_unit_test(capacity_and_balance) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
