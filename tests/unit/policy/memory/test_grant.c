/* Single decisions of admission; test_schedules.c checks the invariants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/memory/grant.h"

static const struct order_bounds bounds = { .patience_ns = 1000, .passes_most = 2 };

/* A request that waits for `bytes` of card 0; `id` is its arrival as well. */
static struct grant_request request(uint32_t id, double use_ns, uint64_t bytes)
{
	return (struct grant_request){
		.key = { .use_ns = use_ns, .arrival = id, .id = id },
		.need_count = 1,
		.need = { { .card = 0, .bytes = bytes } },
	};
}

static enum grant_verdict verdict_of(const struct grant_request *list, size_t count, uint32_t id)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].key.id == id)
			return list[i].verdict;
	fail_msg("request %u is gone", id);
	return GRANT_REFUSED;
}

static void test_the_least_used_gets_it(void **state)
{
	struct grant_card card = { .size_bytes = 100, .taken_bytes = 40 };
	struct grant_request list[] = { request(1, 9, 60), request(2, 3, 60), request(3, 5, 60) };

	grant_decide(&card, 1, list, 3, 10, &bounds);
	assert_int_equal(verdict_of(list, 3, 2), GRANT_GRANTED);
	assert_int_equal(verdict_of(list, 3, 1), GRANT_WAITS);
	assert_int_equal(verdict_of(list, 3, 3), GRANT_WAITS);
	assert_int_equal(list[0].place, 1);
	assert_int_equal(list[2].key.id, 1);
	assert_int_equal(list[2].place, 3);
	assert_int_equal(card.taken_bytes, 100);
}

/* The seed's scene: six of equal need, room for three. */
static void test_three_of_six(void **state)
{
	struct grant_card card = { .size_bytes = 24, .taken_bytes = 19 };
	struct grant_request list[6];

	for (uint32_t i = 0; i < 6; i++)
		list[i] = request(6 - i, 0, 1);
	card.size_bytes = 22;
	grant_decide(&card, 1, list, 6, 10, &bounds);
	for (uint32_t id = 1; id <= 6; id++)
		assert_int_equal(verdict_of(list, 6, id), id <= 3 ? GRANT_GRANTED : GRANT_WAITS);
}

static void test_all_its_cards_or_none(void **state)
{
	struct grant_card cards[2] = { { .size_bytes = 100 },
				       { .size_bytes = 100, .taken_bytes = 80 } };
	struct grant_request both = request(1, 0, 50);

	both.need[both.need_count++] = (struct grant_need){ .card = 1, .bytes = 30 };
	grant_decide(cards, 2, &both, 1, 10, &bounds);
	assert_int_equal(both.verdict, GRANT_WAITS);
	assert_int_equal(cards[0].taken_bytes, 0);
	cards[1].taken_bytes = 70;
	grant_decide(cards, 2, &both, 1, 10, &bounds);
	assert_int_equal(both.verdict, GRANT_GRANTED);
	assert_int_equal(cards[0].taken_bytes, 50);
	assert_int_equal(cards[1].taken_bytes, 100);
}

static void test_what_can_never_be_met_is_refused(void **state)
{
	struct grant_card card = { .size_bytes = 100 };
	struct grant_request list[] = { request(1, 0, 101), request(2, 0, 100) };
	struct grant_request elsewhere = request(3, 0, 1);

	grant_decide(&card, 1, list, 2, 10, &bounds);
	assert_int_equal(verdict_of(list, 2, 1), GRANT_REFUSED);
	assert_int_equal(verdict_of(list, 2, 2), GRANT_GRANTED);
	elsewhere.need[0].card = 1;
	grant_decide(&card, 1, &elsewhere, 1, 10, &bounds);
	assert_int_equal(elsewhere.verdict, GRANT_REFUSED);
}

/* Small ones pass the large one twice; then its bytes are kept. */
static void test_bounded_passing(void **state)
{
	struct grant_card card = { .size_bytes = 100, .taken_bytes = 60 };
	struct grant_request large = request(1, 0, 90);

	for (uint32_t i = 0; i < 3; i++) {
		struct grant_request list[] = { large, request(2 + i, 1, 10) };
		grant_decide(&card, 1, list, 2, 10, &bounds);
		assert_int_equal(verdict_of(list, 2, 1), GRANT_WAITS);
		assert_int_equal(verdict_of(list, 2, 2 + i), i < 2 ? GRANT_GRANTED : GRANT_WAITS);
		large = list[0].key.id == 1 ? list[0] : list[1];
	}
	assert_int_equal(large.key.passes, 2);
	assert_int_equal(card.kept_bytes, 20);
}

/* On a card where it lacks nothing, only its own need is reserved. */
static void test_what_is_left_beside_the_kept_is_given(void **state)
{
	struct grant_card cards[2] = { { .size_bytes = 100, .taken_bytes = 95 },
				       { .size_bytes = 100 } };
	struct grant_request list[3] = { request(1, 0, 50), request(2, 0, 70), request(3, 0, 5) };

	list[0].need[list[0].need_count++] = (struct grant_need){ .card = 1, .bytes = 30 };
	list[1].need[0].card = 1;
	grant_decide(cards, 2, list, 3, 1000, &bounds);
	assert_int_equal(verdict_of(list, 3, 1), GRANT_WAITS);
	assert_int_equal(verdict_of(list, 3, 2), GRANT_GRANTED);
	assert_int_equal(verdict_of(list, 3, 3), GRANT_WAITS);
}

static void test_growth_does_not_wait(void **state)
{
	struct grant_card card = { .size_bytes = 100, .taken_bytes = 80 };
	struct grant_request list[] = { request(1, 0, 20), request(2, 5, 15), request(3, 6, 6) };

	list[1].is_growth = list[2].is_growth = true;
	grant_decide(&card, 1, list, 3, 10, &bounds);
	assert_int_equal(verdict_of(list, 3, 2), GRANT_GRANTED);
	assert_int_equal(verdict_of(list, 3, 3), GRANT_REFUSED);
	assert_int_equal(verdict_of(list, 3, 1), GRANT_WAITS);
}

/* Not even a tenant that already holds memory gets the reserved memory. */
static void test_growth_leaves_what_is_kept(void **state)
{
	struct grant_card card = { .size_bytes = 100, .taken_bytes = 80 };
	struct grant_request list[] = { request(1, 0, 30), request(2, 5, 1) };

	list[1].is_growth = true;
	grant_decide(&card, 1, list, 2, 1000, &bounds);
	assert_int_equal(verdict_of(list, 2, 2), GRANT_REFUSED);
}

static void test_nothing_to_decide(void **state)
{
	struct grant_card card = { .size_bytes = 100, .taken_bytes = 180, .kept_bytes = 7 };

	grant_decide(&card, 1, NULL, 0, 10, &bounds);
	assert_int_equal(card.kept_bytes, 0);
	assert_int_equal(grant_free_bytes(&card), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_least_used_gets_it),
		cmocka_unit_test(test_three_of_six),
		cmocka_unit_test(test_all_its_cards_or_none),
		cmocka_unit_test(test_what_can_never_be_met_is_refused),
		cmocka_unit_test(test_bounded_passing),
		cmocka_unit_test(test_what_is_left_beside_the_kept_is_given),
		cmocka_unit_test(test_growth_does_not_wait),
		cmocka_unit_test(test_growth_leaves_what_is_kept),
		cmocka_unit_test(test_nothing_to_decide),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
