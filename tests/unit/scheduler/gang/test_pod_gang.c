/* When a gang's time has come, and how its pods find room together: both pure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "scheduler/gang/pod_gang.h"

#define ROLL(n, ...) (&(const struct gang_counts){ .size = (n), .count = { __VA_ARGS__ } })

static void test_verdicts(void **state)
{
	assert_int_equal(gang_judge(ROLL(0, [GANG_PENDING] = 3)), GANG_NONE);
	assert_int_equal(gang_judge(ROLL(4, [GANG_PENDING] = 3)), GANG_INCOMPLETE);
	assert_int_equal(gang_judge(ROLL(4, [GANG_PENDING] = 3, [GANG_ABSENT] = 1)),
			 GANG_INCOMPLETE);
	assert_int_equal(gang_judge(ROLL(4, [GANG_PENDING] = 3, [GANG_NEEDS_NO_CARDS] = 1)),
			 GANG_PLACE_TOGETHER);
	assert_int_equal(gang_judge(ROLL(4, [GANG_PENDING] = 1, [GANG_RESERVED] = 3)),
			 GANG_PLACE_TOGETHER);
	assert_int_equal(gang_judge(ROLL(4, [GANG_PENDING] = 2, [GANG_RESERVED] = 4)),
			 GANG_COMPLETE);
	assert_int_equal(gang_judge(ROLL(4, [GANG_WAITS_TO_BIND] = 3, [GANG_NEEDS_NO_CARDS] = 1)),
			 GANG_COMPLETE);
	/* What is there of it when the scheduler starts: the rest is completed together. */
	assert_int_equal(gang_judge(ROLL(4, [GANG_PENDING] = 3, [GANG_BOUND] = 1)),
			 GANG_PLACE_TOGETHER);
	/* Some have ended: who comes in their place does not wait for them. */
	assert_int_equal(gang_judge(ROLL(4, [GANG_PENDING] = 1, [GANG_BOUND] = 2)),
			 GANG_REPLACE_PODS);
	assert_int_equal(gang_judge(ROLL(4, [GANG_PENDING] = 1, [GANG_BOUND] = 4)), GANG_COMPLETE);
	assert_int_equal(gang_judge(ROLL(1, [GANG_PENDING] = 1)), GANG_PLACE_TOGETHER);
}

static void test_numbers(void **state)
{
	assert_int_equal(gang_count_present(
				 ROLL(4, [GANG_ABSENT] = 2, [GANG_RESERVED] = 1, [GANG_BOUND] = 3)),
			 4);
	assert_int_equal(
		gang_count_to_place(
			ROLL(4, [GANG_RESERVED] = 2, [GANG_BOUND] = 1, [GANG_NEEDS_NO_CARDS] = 1)),
		2);
	assert_int_equal(gang_count_to_place(ROLL(2, [GANG_BOUND] = 3)), 0);
	assert_true(gang_has_begun(ROLL(4, [GANG_BINDING] = 1)));
	/* One that needs no cards runs before the others: that is no beginning. */
	assert_false(gang_has_begun(ROLL(4, [GANG_NEEDS_NO_CARDS] = 1, [GANG_WAITS_TO_BIND] = 3)));
}

static void test_beginning(void **state)
{
	assert_false(gang_may_bind(ROLL(4, [GANG_WAITS_TO_BIND] = 3, [GANG_RESERVED] = 1)));
	assert_true(gang_may_bind(ROLL(4, [GANG_WAITS_TO_BIND] = 4, [GANG_PENDING] = 1)));
	assert_true(gang_may_bind(ROLL(4, [GANG_WAITS_TO_BIND] = 3, [GANG_NEEDS_NO_CARDS] = 1)));
	assert_true(gang_may_bind(
		ROLL(4, [GANG_WAITS_TO_BIND] = 1, [GANG_BOUND] = 1, [GANG_RESERVED] = 2)));
}

static void test_pauses(void **state)
{
	const uint64_t hold_ns = UINT64_C(30) * 1000000000;
	for (unsigned salt = 1; salt < 1000; salt++) {
		for (unsigned n = 1; n < 100; n++) {
			uint64_t pause_ns = gang_backoff_ns(n, hold_ns, salt);
			unsigned doublings = n < 5 ? n - 1 : 4;
			assert_true(pause_ns >= hold_ns << doublings);
			assert_true(pause_ns < hold_ns << (doublings + 1));
		}
		/* Two neighbours are apart, sooner or later by as long as room is kept. */
		int64_t apart_ns = (int64_t)(gang_backoff_ns(5, hold_ns, salt) -
					     gang_backoff_ns(5, hold_ns, salt + 1));
		assert_true(llabs(apart_ns) > (int64_t)hold_ns);
	}
}

/* ---- seats: member i may have those of may[i], and takes the first that is free ---- */

#define SEATS 4

struct room {
	const unsigned *may; /* bits */
	bool is_placed[SEATS];
	int place[8];
	unsigned taken, tries;
};

static bool place(void *data, size_t i)
{
	struct room *room = data;
	room->tries++;
	for (int k = 0; k < SEATS; k++)
		if ((room->may[i] >> k & 1) && !room->is_placed[k]) {
			room->is_placed[k] = true;
			room->place[i] = k;
			room->taken++;
			return true;
		}
	return false;
}

static void unplace(void *data, size_t i)
{
	struct room *room = data;
	assert_true(room->is_placed[room->place[i]]);
	room->is_placed[room->place[i]] = false;
	room->taken--;
}

static bool is_like(void *data, size_t i, size_t k)
{
	const struct room *room = data;
	return room->may[i] == room->may[k];
}

static size_t seat_in(struct room *room, const unsigned *may, size_t count, size_t needed)
{
	struct gang_slot order[8];
	const struct gang_trial trial = { place, unplace, is_like, room };
	*room = (struct room){ .may = may };
	return gang_place(&trial, count, needed, order);
}

static void test_seats(void **state)
{
	struct room room;
	assert_int_equal(seat_in(&room, (const unsigned[]){ 15, 15, 15, 15 }, 4, 4), 4);
	assert_int_equal(room.taken, 4);
	/* Too few: nobody sits, and the most that did is told. */
	assert_int_equal(seat_in(&room, (const unsigned[]){ 7, 7, 7, 7 }, 4, 4), 3);
	assert_int_equal(room.taken, 0);
	/* As they are alike, another order would be no better. */
	assert_int_equal(room.tries, 4);
	assert_int_equal(seat_in(&room, (const unsigned[]){ 0, 0 }, 2, 1), 0);
	assert_int_equal(seat_in(&room, (const unsigned[]){ 0 }, 0, 1), 0);
}

static void test_more_than_are_needed(void **state)
{
	struct room room;
	assert_int_equal(seat_in(&room, (const unsigned[]){ 3, 3, 3, 3 }, 4, 2), 2);
	assert_int_equal(room.taken, 2);
	/* One that nothing can be done for is in nobody's way. */
	assert_int_equal(seat_in(&room, (const unsigned[]){ 0, 7, 1, 7 }, 4, 3), 3);
	assert_int_equal(room.taken, 3);
}

static void test_the_choosy_go_first(void **state)
{
	struct room room;
	/* The first takes what the last alone could have. */
	assert_int_equal(seat_in(&room, (const unsigned[]){ 3, 6, 4 }, 3, 3), 3);
	assert_int_equal(seat_in(&room, (const unsigned[]){ 15, 15, 3, 1 }, 4, 4), 4);
	assert_int_equal(room.place[3], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_beginning),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_seats),
		cmocka_unit_test(test_more_than_are_needed),
		cmocka_unit_test(test_the_choosy_go_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
