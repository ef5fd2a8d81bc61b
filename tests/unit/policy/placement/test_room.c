/* Room for a request, counted by hand, and the amounts that a placement uses. */
#include "layouts.h"
#include "policy/placement/room.h"

static struct place_request asking(unsigned count, uint64_t memory_bytes, uint32_t cores_pct)
{
	return (struct place_request){ .count = count,
				       .memory_bytes = memory_bytes,
				       .cores_mpct = cores_pct * 1000 };
}

/* Cards of 16 GiB for ten, of no NUMA node. */
static struct place_node node_of(unsigned cards)
{
	struct place_node node = { .card_count = cards };
	for (unsigned i = 0; i < cards; i++)
		node.card[i] = (struct place_card){ .uuid = "GPU-x",
						    .type = "NVIDIA-T4",
						    .memory_total_bytes = 16 * GIB,
						    .cores_total_mpct = PLACE_CORES_WHOLE_MPCT,
						    .slots_total = 10 };
	return node;
}

static struct place_tally tally_of(const struct place_histogram *histogram,
				   const struct place_node *node)
{
	struct place_tally tally = { 0 };
	for (unsigned i = 0; i < node->card_count; i++) {
		struct place_fits fits;
		place_card_fits(histogram, &node->card[i], &fits);
		place_tally_add(histogram, &fits, &tally);
	}
	return tally;
}

static unsigned fits(const struct place_card *card, struct place_request request)
{
	return place_kind_fits(card, &request);
}

static void kinds(void **state)
{
	static const char *const words[] = { "V100" };
	struct place_card card = node_of(1).card[0];
	struct place_request of_type = asking(1, GIB, 10);
	struct place_request percent = asking(1, 0, 10);
	percent.memory = PLACE_MEMORY_PCT;
	percent.memory_pct = 30;
	/* The scarcer of time, memory and slots decides. */
	assert_int_equal(fits(&card, asking(1, 5 * GIB, 10)), 3);
	assert_int_equal(fits(&card, asking(1, GIB, 30)), 3);
	assert_int_equal(fits(&card, asking(1, GIB, 1)), 10);
	assert_int_equal(fits(&card, asking(1, 0, 0)), 10);
	assert_int_equal(place_kind_fits(&card, &percent), 3);
	assert_int_equal(fits(&card, asking(1, 17 * GIB, 0)), 0);
	of_type.use_type = (struct place_words){ words, 1 };
	assert_int_equal(place_kind_fits(&card, &of_type), 0);
	/* A request for a whole card gets one without tenants. */
	assert_int_equal(fits(&card, asking(1, GIB, 100)), 1);
	card.slots_used = 1;
	assert_int_equal(fits(&card, asking(1, GIB, 100)), 0);
	card.is_cordoned = true;
	assert_int_equal(fits(&card, asking(1, GIB, 1)), 0);
}

/* A quarter of a card, a card, and two cards, on four cards of which one has a half left. */
static void rooms(void **state)
{
	struct place_histogram histogram = { .count = 3,
					     .kind = { { asking(1, 4 * GIB, 25), 1 },
						       { asking(1, 16 * GIB, 100), 10 },
						       { asking(2, 16 * GIB, 100), 100 } } };
	struct place_node node = node_of(4);
	node.card[3].slots_used = 1;
	node.card[3].memory_used_bytes = 8 * GIB;
	node.card[3].cores_used_mpct = 50000;
	struct place_tally all = tally_of(&histogram, &node);
	assert_int_equal(place_room(&histogram, &all, 0), 14);
	assert_int_equal(place_room(&histogram, &all, 1), 3);
	assert_int_equal(place_room(&histogram, &all, 2), 1);

	/* On a free card one quarter and one card are lost, and no pair: two cards are still free. Beside the half nothing else. */
	struct place_request quarter = histogram.kind[0].request;
	double loss[PLACE_MAX_CARDS];
	place_room_losses(&histogram, &node, &quarter, loss);
	assert_true(loss[0] == 1 + 10 && loss[1] == loss[0] && loss[2] == loss[0]);
	assert_true(loss[3] == 1);

	/* With one free card less the pair is lost, too. */
	struct place_node less = node;
	less.card[0] = place_with_share(&node.card[0], &quarter);
	place_room_losses(&histogram, &less, &quarter, loss);
	assert_true(loss[0] == 1 && loss[1] == 1 + 10 + 100 && loss[3] == 1);

	/* The same by both ways of counting. */
	struct place_tally after = tally_of(&histogram, &less);
	struct place_fits before, now;
	place_card_fits(&histogram, &node.card[0], &before);
	place_card_fits(&histogram, &less.card[0], &now);
	struct place_tally changed = all;
	place_tally_change(&histogram, &before, &now, &changed);
	assert_memory_equal(&changed, &after, sizeof(after));
	assert_true(place_card_loss(&histogram, &all, &before, &now) == 11);
	assert_true(place_card_loss(&histogram, &after, &now, &before) == -11);
}

/* Three of a pair's kind find room on four cards only two by two. */
static void several_cards(void **state)
{
	struct place_histogram histogram = { .count = 1, .kind = { { asking(3, 4 * GIB, 50), 1 } } };
	struct place_node node = node_of(4);
	struct place_tally all = tally_of(&histogram, &node);
	assert_int_equal(place_room(&histogram, &all, 0), 2); /* eight halves, three at a time */
	node.card[0].is_sick = node.card[1].is_sick = true;
	all = tally_of(&histogram, &node);
	assert_int_equal(place_room(&histogram, &all, 0), 0); /* of two cards no three differ */
}

/* Where most ask for 65 %, 36 % are had from a card that has only 40 left for less than from a free one. */
static void evaluator(void **state)
{
	struct place_histogram histogram = {
		.count = 2, .kind = { { asking(1, GIB, 65), 0.7 }, { asking(1, GIB, 32), 0.3 } }
	};
	struct place_node node = node_of(3);
	struct place_choice choice;
	struct place_request request = asking(1, GIB, 36);
	request.evaluator[request.evaluator_count++] = "room";
	node.card[1].slots_used = 1;
	node.card[1].cores_used_mpct = 60000;
	node.card[2].slots_used = 1;
	node.card[2].cores_used_mpct = 30000;
	/* All lose one 32: card 0 of three, card 1 its only one, card 2 of two; but cards 0 and 2 lose their 65 as well. */
	node.histogram = &histogram;
	assert_int_equal(place_choose(&node, &request, &choice), 0);
	assert_int_equal(choice.card[0], 1);
	/* Without a workload histogram all are alike: the first. */
	node.histogram = NULL;
	assert_int_equal(place_choose(&node, &request, &choice), 0);
	assert_int_equal(choice.card[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kinds), cmocka_unit_test(rooms),
					    cmocka_unit_test(several_cards),
					    cmocka_unit_test(evaluator) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
