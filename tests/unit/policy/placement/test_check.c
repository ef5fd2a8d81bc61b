/* Why a card is not usable: each reason, their order of precedence, and their texts. */
#include "layouts.h"

#include <errno.h>
#include <string.h>

static struct place_card card_of(void)
{
	return (struct place_card){ .uuid = "GPU-a",
				    .type = "NVIDIA A100 80GB PCIe",
				    .memory_total_bytes = 80 * GIB,
				    .cores_total_mpct = 100000,
				    .slots_total = 10 };
}

static const char *const a100[] = { "t4", "a100" }, *const h100[] = { "H100" };
static const char *const uuid_a[] = { "GPU-b", "GPU-a" }, *const part_of_a[] = { "GPU-" };

/* From the last reason to the first: each is put on top of those before, and is found. */
static void order(void **state)
{
	struct place_card card = card_of();
	struct place_request request = { .count = 1 };

	assert_int_equal(place_check_card(&card, &request), PLACE_FITS);
	card.cores_used_mpct = 100000;
	assert_int_equal(place_check_card(&card, &request), PLACE_COMPUTE_UNITS_EXHAUSTED);
	card.cores_used_mpct = 0;
	card.slots_used = 1;
	request.cores_mpct = 100000;
	assert_int_equal(place_check_card(&card, &request), PLACE_EXCLUSIVE_CONFLICT);
	card.cores_used_mpct = 1;
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_INSUFFICIENT_CORE);
	request.memory_bytes = 80 * GIB + 1;
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_INSUFFICIENT_MEMORY);
	card.slots_used = 10;
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_TIME_SLICING_EXHAUSTED);
	request.nouse_uuid = (struct place_words){ uuid_a, 2 };
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_UUID_MISMATCH);
	request.use_type = (struct place_words){ h100, 1 };
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_TYPE_MISMATCH);
	card.is_cordoned = true;
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_CORDONED);
	card.is_sick = true;
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_NOT_HEALTH);
}

static void words(void **state)
{
	struct place_card card = card_of();
	struct place_request request = { .count = 1, .use_type = { a100, 2 } };

	assert_int_equal(place_check_card(&card, &request), PLACE_FITS);
	request.nouse_type = (struct place_words){ a100, 2 };
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_TYPE_MISMATCH);
	/* An instance of MIG serves by itself alone. */
	card.is_instance = true;
	request = (struct place_request){ .count = 1 };
	assert_int_equal(place_check_card(&card, &request), PLACE_FITS);
	request.count = 2;
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_TYPE_MISMATCH);
	card.is_instance = false;
	request = (struct place_request){ .count = 1, .use_uuid = { uuid_a, 2 } };
	assert_int_equal(place_check_card(&card, &request), PLACE_FITS);
	request.use_uuid = (struct place_words){ part_of_a, 1 };
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_UUID_MISMATCH);
	request = (struct place_request){ .count = 1, .nouse_uuid = { part_of_a, 1 } };
	assert_int_equal(place_check_card(&card, &request), PLACE_FITS);
}

static void needs(void **state)
{
	struct place_card card = card_of();
	struct place_request request = { .memory = PLACE_MEMORY_PCT, .memory_pct = 25 };

	assert_int_equal(place_need(&card, &request).memory_bytes, 20 * GIB);
	request.memory_bytes = 30 * GIB;
	assert_int_equal(place_need(&card, &request).memory_bytes, 30 * GIB);
	card.memory_reserved_bytes = GIB;
	card.cores_reserved_mpct = 5000;
	request = (struct place_request){ .count = 1,
					  .memory = PLACE_MEMORY_ALL,
					  .cores_mpct = 100000 };
	assert_int_equal(place_need(&card, &request).memory_bytes, 79 * GIB);
	assert_int_equal(place_need(&card, &request).cores_mpct, 95000);
	assert_int_equal(place_check_card(&card, &request), PLACE_FITS);
	request = (struct place_request){ .count = 1, .cores_mpct = 96000 };
	assert_int_equal(place_check_card(&card, &request), PLACE_CARD_INSUFFICIENT_CORE);
	/* More used than there is: nothing is left, nothing wraps. */
	card.memory_used_bytes = 200 * GIB;
	card.cores_used_mpct = 200000;
	assert_int_equal(place_memory_left(&card), 0);
	assert_int_equal(place_cores_left(&card), 0);
}

static void sets(void **state)
{
	struct place_node node = layout_node("pcie");
	struct place_request request = { .count = 5, .cores_mpct = 1000, .numa_bind = true };
	struct place_choice choice;
	char text[256];

	assert_int_equal(place_choose(&node, &request, &choice), -ENOSPC);
	assert_int_equal(place_reasons_text(choice.reason, 8, &request, text, sizeof(text)), 14);
	assert_string_equal(text, "8/8 NumaNotFit");
	request.count = 4;
	node.card[1].is_sick = true;
	assert_int_equal(place_choose(&node, &request, &choice), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(choice.card[i], 4 + i);
	/* A required card is on the other node, where a card is missing. */
	request.must_uuid = (struct place_words){ &node.card[0].uuid, 1 };
	assert_int_equal(place_choose(&node, &request, &choice), -ENOSPC);
	assert_int_equal(choice.reason[4], PLACE_NUMA_NOT_FIT);
	request.count = 3;
	assert_int_equal(place_choose(&node, &request, &choice), 0);
	assert_int_equal(choice.card[2], 3);
	request.must_uuid.word = &node.card[1].uuid;
	assert_int_equal(place_choose(&node, &request, &choice), -ENOSPC);
	assert_int_equal(choice.reason[1], PLACE_CARD_NOT_HEALTH);
	request.must_uuid.word = part_of_a;
	assert_int_equal(place_choose(&node, &request, &choice), -ENOSPC);
	request.must_uuid.count = 0;
	request.numa_bind = false;
	request.count = 8;
	request.memory_bytes = GIB;
	node.card[2].memory_used_bytes = node.card[3].memory_used_bytes =
		node.card[2].memory_total_bytes;
	assert_int_equal(place_choose(&node, &request, &choice), -ENOSPC);
	place_reasons_text(choice.reason, 8, &request, text, sizeof(text));
	assert_string_equal(text, "1/8 CardNotHealth, 2/8 CardInsufficientMemory, "
				  "5/8 AllocatedCardsInsufficientRequest");
	/* Cut, and how long it would have been. */
	assert_int_equal(place_reasons_text(choice.reason, 8, &request, text, 10), 84);
	assert_string_equal(text, "1/8 CardN");
	request.count = 9;
	place_reasons_text(choice.reason, 8, &request, text, sizeof(text));
	assert_string_equal(text, "NodeInsufficientDevice");
}

static void nonsense(void **state)
{
	struct place_node node = layout_node("pcie");
	struct place_choice choice;

	assert_int_equal(place_choose(&node, &(struct place_request){ 0 }, &choice), -EINVAL);
	assert_int_equal(place_choose(&node,
				      &(struct place_request){ .count = 1,
							       .evaluator = { "luck" },
							       .evaluator_count = 1 },
				      &choice),
			 -EINVAL);
	node.card_count = 0;
	assert_int_equal(place_choose(&node, &(struct place_request){ .count = 1 }, &choice),
			 -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(order), cmocka_unit_test(words),
					    cmocka_unit_test(needs), cmocka_unit_test(sets),
					    cmocka_unit_test(nonsense) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
