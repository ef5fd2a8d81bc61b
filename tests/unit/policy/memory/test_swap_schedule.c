/* Which tenants' memory is on a card, on virtual time: the rules in simple scenes of one card. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "swap_schedule_model.h"

static void test_what_fits_together_stays(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	model_add(1, 40 * GIB, S, 0, true);
	model_add(1, 40 * GIB, S, 100 * MS, true);
	model_add(1, 10 * GIB, S, 10 * S, true);
	model_run(600 * S);
	assert_int_equal(m.r.orders, 0);
}

static void test_two_that_do_not_fit_take_turns(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int a = model_add(1, 60 * GIB, S, 0, true), b = model_add(1, 60 * GIB, S, 0, false);
	model_run(1200 * S);
	double part = (double)m.moving_ns / (double)(1200 * S);
	printf("served %.0f and %.0f s of 1200, moving %.1f %%\n", (double)m.t[a].served_ns / 1e9,
	       (double)m.t[b].served_ns / 1e9, part * 100);
	assert_true(model_was_within());
	assert_true(m.t[a].served_ns > 500 * S && m.t[b].served_ns > 500 * S);
	assert_true(part < 0.115);
}

/* The weights set the lengths of turns, up to a bound; the time for moves sets the shortest turn. */
static void test_turns_by_weight(void **state)
{
	static const double weights[][2] = { { 60, 20 }, { 50, 50 }, { 0, 0 }, { 95, 5 } };
	static const double ratios[] = { 3, 1, 1, 8 };

	for (unsigned i = 0; i < 4; i++) {
		model_start(100 * GIB, 40e9, 1);
		int a = model_add(1, 60 * GIB, S, 0, true), b = model_add(1, 60 * GIB, S, 0, false);
		m.t[a].weight = weights[i][0];
		m.t[b].weight = weights[i][1];
		model_run(6000 * S);
		double ratio = (double)m.t[a].served_ns / (double)m.t[b].served_ns;
		printf("%g and %g: %.0f and %.0f s, %.2f to 1\n", weights[i][0], weights[i][1],
		       (double)m.t[a].served_ns / 1e9, (double)m.t[b].served_ns / 1e9, ratio);
		assert_true(ratio > 0.9 * ratios[i] && ratio < 1.1 * ratios[i]);
		assert_true((double)m.moving_ns / (double)(6000 * S) < 0.115);
	}
}

/* A tenant without work lengthens no turn. */
static void test_the_weight_of_the_idle_is_none(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int a = model_add(1, 30 * GIB, S, 0, true);
	int idle = model_add(1, 30 * GIB, 1, UINT64_MAX / 4, true);
	model_run(S);
	uint64_t turn = swap_schedule_turn_ns(&m.r, a, 30 * GIB);
	m.t[a].weight = 90;
	m.t[idle].weight = 10;
	model_run(S);
	assert_true(swap_schedule_turn_ns(&m.r, a, 30 * GIB) == turn);
}

/* Moves ten times as slow as was thought make turns ten times as long. */
static void test_slow_moves_make_long_turns(void **state)
{
	uint64_t orders[2];

	for (int slow = 0; slow < 2; slow++) {
		model_start(100 * GIB, slow ? 2e9 : 20e9, 1);
		model_add(1, 60 * GIB, S, 0, true);
		model_add(1, 60 * GIB, S, 0, false);
		model_run(6000 * S);
		orders[slow] = m.r.orders;
		printf("%s moves: %u orders in 6000 s, moving %.1f %%\n", slow ? "slow" : "fast",
		       (unsigned)orders[slow], (double)m.moving_ns / (double)(6000 * S) * 100);
		assert_true((double)m.moving_ns / (double)(6000 * S) < 0.13);
	}
	assert_true(orders[0] > 6 * orders[1]);
}

static void test_the_idle_leave_first(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int worker = model_add(1, 40 * GIB, S, 0, true),
	    idle = model_add(1, 40 * GIB, 1, UINT64_MAX / 4, true);
	model_run(20 * S);
	int comes = model_add(1, 30 * GIB, S, 0, false);
	model_run(20 * S);
	assert_int_equal(m.t[worker].place, SWAP_SCHEDULE_IN);
	assert_int_equal(m.t[idle].place, SWAP_SCHEDULE_OUT);
	assert_int_equal(m.t[comes].place, SWAP_SCHEDULE_IN);
	assert_true(m.t[comes].longest_wait < 5 * S);
	/* When all fit again, it returns though it has no work. */
	swap_schedule_remove(&m.r, comes);
	m.t[comes].is_there = false;
	model_run(60 * S);
	assert_int_equal(m.t[idle].place, SWAP_SCHEDULE_IN);
	assert_int_equal(m.r.orders, 1);
}

/* A tenant that grows leaves room for an idle one between two allocations: the idle one is not moved there and back. */
static void test_the_idle_stay_out_while_another_grows(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int idle = model_add(1, 60 * GIB, 1, UINT64_MAX / 4, true);
	model_run(20 * S);
	int grows = model_add(1, 20 * GIB, S, 0, true);
	m.t[grows].wanted[0] = 20 * GIB;
	model_run(30 * S);
	assert_int_equal(m.t[idle].place, SWAP_SCHEDULE_OUT);
	/* It frees its memory, and allocates it again. */
	for (int i = 0; i < 20; i++) {
		m.t[grows].movable[0] = 10 * GIB;
		model_run(2 * S);
		m.t[grows].wanted[0] = 30 * GIB;
		model_run(2 * S);
		assert_int_equal(m.t[grows].wanted[0], 0);
	}
	assert_int_equal(m.r.orders, 1);
	assert_int_equal(m.t[idle].place, SWAP_SCHEDULE_OUT);
	assert_true(model_was_within());
	m.t[grows].movable[0] = 10 * GIB;
	model_run(60 * S);
	assert_int_equal(m.t[idle].place, SWAP_SCHEDULE_IN);
}

/* A tenant that left for another does not return before the other has used the memory. */
static void test_room_is_reserved_for_its_request(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int idle = model_add(1, 60 * GIB, 1, UINT64_MAX / 4, true);
	model_run(20 * S);
	int grows = model_add(1, 10 * GIB, S, 0, true);
	m.t[grows].wanted[0] = 40 * GIB;
	while (m.t[grows].wanted[0])
		model_run(TICK);
	model_run(10 * S);
	assert_int_equal(m.r.orders, 1);
	assert_int_equal(m.t[idle].place, SWAP_SCHEDULE_OUT);
	assert_true(model_was_within());
}

static void test_a_refusing_tenant_is_skipped(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int first = model_add(1, 40 * GIB, S, 0, true);
	model_run(S);
	int second = model_add(1, 40 * GIB, S, 0, true);
	m.refuse_in = 1; /* every one, at first */
	int comes = model_add(1, 40 * GIB, S, 0, false);
	while (!m.t[first].has_refused)
		model_run(TICK);
	m.refuse_in = 0;
	while (m.t[comes].place != SWAP_SCHEDULE_IN)
		model_run(TICK);
	assert_int_equal(m.t[first].place, SWAP_SCHEDULE_IN);
	assert_int_equal(m.t[second].place, SWAP_SCHEDULE_OUT);
}

/* However long the turns are, a tenant in the queue may expect memory; but not memory that was refused to it. */
static void test_hope(void **state)
{
	model_start(100 * GIB, 1e9, 1);
	int first = model_add(1, 60 * GIB, S, 0, true);
	model_run(S);
	assert_false(swap_schedule_can_ever_fit(&m.r, first)); /* it lacks nothing */
	m.refuse_in = 1;
	int second = model_add(1, 60 * GIB, S, 0, false);
	model_run(TICK);
	uint64_t begin = m.now;
	while (m.t[first].place == SWAP_SCHEDULE_IN && !m.t[first].has_refused) {
		assert_true(swap_schedule_can_ever_fit(&m.r, second));
		model_run(TICK);
	}
	assert_true(m.now - begin > 50 * S);
	while (!m.t[first].has_refused)
		model_run(TICK);
	model_run(2 * TICK);
	assert_false(swap_schedule_can_ever_fit(&m.r, second));
	m.refuse_in = 0;
	while (m.t[second].place != SWAP_SCHEDULE_IN)
		model_run(TICK);
	model_run(S);
	assert_false(swap_schedule_can_ever_fit(&m.r, second));
	assert_true(swap_schedule_can_ever_fit(&m.r, first));
	/* Nor memory that no card has, nor memory that it can have at once. */
	assert_true(swap_schedule_can_ever_fit(&m.r, first));
	m.r.tenant[first].is_granted = true;
	assert_false(swap_schedule_can_ever_fit(&m.r, first));
	m.r.tenant[first].is_granted = false;
	int large = model_add(1, 110 * GIB, S, 0, false);
	model_run(2 * TICK);
	assert_false(swap_schedule_can_ever_fit(&m.r, large));
}

/* A stopped tenant does not keep the others from each other's memory. */
static void test_a_silent_tenant_is_skipped(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int deaf = model_add(1, 40 * GIB, S, 0, true);
	model_run(S);
	model_add(1, 40 * GIB, S, 0, true);
	int comes = model_add(1, 40 * GIB, S, 0, false);
	while (m.t[deaf].place != SWAP_SCHEDULE_LEAVING)
		model_run(TICK);
	m.t[deaf].move_ends = UINT64_MAX;
	uint64_t begin = m.now;
	while (m.t[comes].place != SWAP_SCHEDULE_IN)
		model_run(TICK);
	printf("%.1f s\n", (double)(m.now - begin) / 1e9);
	assert_true(m.now - begin < 30 * S);
}

/* A move may take any time as long as it makes progress. */
static void test_a_slow_move_is_awaited(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int slow = model_add(1, 40 * GIB, S, 0, true);
	model_run(S);
	model_add(1, 40 * GIB, S, 0, true);
	int comes = model_add(1, 40 * GIB, S, 0, false);
	while (m.t[slow].place != SWAP_SCHEDULE_LEAVING)
		model_run(TICK);
	m.t[slow].move_ends = m.now + 60 * S;
	while (m.t[slow].place == SWAP_SCHEDULE_LEAVING) {
		m.t[slow].progress += model_random(20) == 0;
		model_run(TICK);
		assert_false(m.r.tenant[slow].should_be_in);
	}
	assert_int_equal(m.t[slow].place, SWAP_SCHEDULE_OUT);
	while (m.t[comes].place != SWAP_SCHEDULE_IN)
		model_run(TICK);
}

/* Other tenants left for its request: it is not moved out before it had a turn with that memory. */
static void test_a_served_tenant_has_a_turn(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int grows = model_add(1, 40 * GIB, S, 0, true), leaves = model_add(1, 50 * GIB, S, 0, true);
	model_run(60 * S);
	m.t[grows].wanted[0] = 20 * GIB;
	while (m.t[grows].wanted[0])
		model_run(TICK);
	assert_int_equal(m.t[leaves].place, SWAP_SCHEDULE_OUT);
	uint64_t begin = m.now, turn = swap_schedule_turn_ns(&m.r, grows, 50 * GIB);
	while (m.t[grows].place == SWAP_SCHEDULE_IN)
		model_run(TICK);
	printf("%.1f s of %.1f\n", (double)(m.now - begin) / 1e9, (double)turn / 1e9);
	assert_true(m.now - begin + 2 * TICK >= turn);
}

/* While bytes are reserved for a tenant that is to return, others keep their grants and get no more. */
static void test_reserved_memory_is_granted_to_no_other(void **state)
{
	struct swap_schedule_observation in = { .place = SWAP_SCHEDULE_IN,
						.part_count = 1,
						.part[0].movable_bytes = 10 * GIB,
						.has_work = true };
	struct swap_schedule_observation out = { .place = SWAP_SCHEDULE_OUT,
						 .part_count = 1,
						 .part[0].movable_bytes = 30 * GIB };

	model_start(100 * GIB, 40e9, 1);
	int a = swap_schedule_add(&m.r, true, m.now), b = swap_schedule_add(&m.r, false, m.now);
	swap_schedule_observe(&m.r, a, &in, m.now);
	swap_schedule_observe(&m.r, b, &out, m.now);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now);
	assert_true(swap_schedule_may_take(&m.r, a, 0) == UINT64_MAX);
	out.has_work = true;
	swap_schedule_observe(&m.r, b, &out, m.now + S);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now + S);
	assert_true(m.r.tenant[b].should_be_in);
	assert_true(swap_schedule_may_take(&m.r, a, 0) == 0);
	in.part[0].wanted_bytes = 60 * GIB;
	swap_schedule_observe(&m.r, a, &in, m.now + S);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now + S);
	assert_true(swap_schedule_may_take(&m.r, a, 0) == 60 * GIB);
	in.part[0].wanted_bytes = 61 * GIB; /* more than is reserved */
	swap_schedule_observe(&m.r, a, &in, m.now + S);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now + S);
	assert_true(swap_schedule_may_take(&m.r, a, 0) == 0);
	out.place = SWAP_SCHEDULE_IN;
	in.part[0].wanted_bytes = 0;
	swap_schedule_observe(&m.r, b, &out, m.now + 2 * S);
	swap_schedule_observe(&m.r, a, &in, m.now + 2 * S);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now + 2 * S);
	assert_true(swap_schedule_may_take(&m.r, a, 0) == UINT64_MAX);
}

static void test_swapped_out_by_hand_stays_out(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int a = swap_schedule_add(&m.r, true, m.now);
	struct swap_schedule_observation seen = { .place = SWAP_SCHEDULE_IN,
						  .part_count = 1,
						  .part[0].movable_bytes = GIB,
						  .has_work = true,
						  .is_out_by_user = true };
	swap_schedule_observe(&m.r, a, &seen, m.now);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now);
	assert_false(m.r.tenant[a].should_be_in);
	seen.place = SWAP_SCHEDULE_OUT;
	swap_schedule_observe(&m.r, a, &seen, m.now + S);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now + S);
	assert_false(m.r.tenant[a].should_be_in);
	/* When it is called back it returns at once, even without work. */
	seen.is_out_by_user = seen.has_work = false;
	swap_schedule_observe(&m.r, a, &seen, m.now + 2 * S);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now + 2 * S);
	assert_true(m.r.tenant[a].should_be_in);
}

/* A tenant that exceeds the card even alone is let in, so that its allocation is refused; the others are served meanwhile. */
static void test_a_request_that_can_never_fit_is_let_in_and_refused(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int a = swap_schedule_add(&m.r, false, m.now), b = swap_schedule_add(&m.r, false, m.now);
	struct swap_schedule_observation large = { .place = SWAP_SCHEDULE_OUT,
						   .part_count = 1,
						   .part[0].movable_bytes = 101 * GIB,
						   .has_work = true };
	struct swap_schedule_observation small = { .place = SWAP_SCHEDULE_OUT,
						   .part_count = 1,
						   .part[0].movable_bytes = 50 * GIB,
						   .has_work = true };
	for (int i = 0; i < 4; i++, m.now += 2 * S) {
		swap_schedule_observe(&m.r, a, &large, m.now);
		swap_schedule_observe(&m.r, b, &small, m.now);
		swap_schedule_step(&m.r, m.capacity, CARDS, m.now);
		/* At first it may be so for a moment only. */
		assert_int_equal(m.r.tenant[a].should_be_in, i > 0);
		large.is_short = i > 0; /* it has tried */
	}
	assert_true(m.r.tenant[b].should_be_in);
}

/*
 * For a moment a tenant that has just left still seems to hold its memory. No tenant behind the first in the queue is served
 * because of that.
 */
static void test_a_momentary_figure_frees_no_place(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int first = swap_schedule_add(&m.r, false, m.now),
	    left = swap_schedule_add(&m.r, false, m.now);
	struct swap_schedule_observation seen = { .place = SWAP_SCHEDULE_OUT,
						  .part_count = 1,
						  .part[0].movable_bytes = 60 * GIB,
						  .has_work = true };
	struct swap_schedule_observation twice = seen;
	twice.part[0].fixed_bytes = 60 * GIB;
	twice.part[0].movable_bytes = 40 * GIB;
	swap_schedule_observe(&m.r, first, &seen, m.now);
	swap_schedule_observe(&m.r, left, &twice, m.now + TICK);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now + TICK);
	assert_false(m.r.tenant[first].should_be_in);
	assert_false(m.r.tenant[left].should_be_in);
	swap_schedule_observe(&m.r, left, &seen, m.now + 2 * TICK);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now + 2 * TICK);
	assert_true(m.r.tenant[first].should_be_in);
	assert_false(m.r.tenant[left].should_be_in);
}

/* Others took the room of a tenant that returns: this does not count as its failure. It is first in the queue again. */
static void test_a_return_whose_room_was_taken_is_called_off(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int other = swap_schedule_add(&m.r, true, m.now),
	    back = swap_schedule_add(&m.r, false, m.now);
	struct swap_schedule_observation in = { .place = SWAP_SCHEDULE_IN,
						.part_count = 1,
						.part[0].movable_bytes = 40 * GIB,
						.has_work = true };
	struct swap_schedule_observation out = { .place = SWAP_SCHEDULE_OUT,
						 .part_count = 1,
						 .part[0].movable_bytes = 50 * GIB,
						 .has_work = true };
	swap_schedule_observe(&m.r, other, &in, m.now);
	swap_schedule_observe(&m.r, back, &out, m.now);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now);
	assert_true(m.r.tenant[back].should_be_in);
	out.place = SWAP_SCHEDULE_RETURNING;
	uint64_t called_off_ns = 0;
	for (uint64_t begin_ns = m.now; m.now < begin_ns + 60 * S; m.now += TICK) {
		/* For 100 ms at first, then for good; and without its memory again when it has the order to leave. */
		bool has_grown = m.now - begin_ns < 100 * MS || m.now - begin_ns > 3 * S;
		in.part[0].movable_bytes = (has_grown ? 60 : 40) * GIB;
		in.place = m.r.tenant[other].should_be_in ? SWAP_SCHEDULE_IN : SWAP_SCHEDULE_OUT;
		swap_schedule_observe(&m.r, other, &in, m.now);
		swap_schedule_observe(&m.r, back, &out, m.now);
		swap_schedule_step(&m.r, m.capacity, CARDS, m.now);
		if (!m.r.tenant[back].should_be_in && !called_off_ns) {
			called_off_ns = m.now - begin_ns;
			out.place = SWAP_SCHEDULE_OUT;
		}
		if (called_off_ns && m.r.tenant[back].should_be_in)
			break;
	}
	assert_true(called_off_ns >= 4 * S && called_off_ns < 5 * S);
	assert_true(m.r.tenant[back].should_be_in);
	assert_false(m.r.tenant[other].should_be_in);
}

/* A tenant of two cards is on both or on neither. A tenant without memory on the contended card is left alone. */
static void test_a_tenant_of_two_cards(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int both = model_add(3, 60 * GIB, S, 0, true), first = model_add(1, 60 * GIB, S, 0, false),
	    second = model_add(2, 30 * GIB, S, 0, true), third = model_add(4, 90 * GIB, S, 0, true);
	model_run(600 * S);
	assert_true(model_was_within());
	/* Two take turns on the first card; on the others all fits, though one of the two takes its part away. */
	assert_true(m.t[both].served_ns > 200 * S && m.t[first].served_ns > 200 * S);
	assert_int_equal(m.t[second].place, SWAP_SCHEDULE_IN);
	assert_true(m.t[second].served_ns == 600 * S && m.t[third].served_ns == 600 * S);
}

/* A tenant that waits for two cards is overtaken on neither, and delays none on a third. */
static void test_a_wait_for_two_cards_is_not_overtaken(void **state)
{
	model_start(100 * GIB, 40e9, 1);
	int first = model_add(1, 60 * GIB, S, 0, true), second = model_add(2, 60 * GIB, S, 0, true);
	model_run(10 * S);
	int both = model_add(3, 75 * GIB, S, 0, false);
	model_run(TICK);
	/* It would fit on its card at once. */
	int late = model_add(2, 30 * GIB, S, 0, false), apart = model_add(4, 30 * GIB, S, 0, false);
	while (m.t[both].place != SWAP_SCHEDULE_IN)
		model_tick();
	assert_int_equal(m.t[apart].place, SWAP_SCHEDULE_IN);
	assert_int_equal(m.t[late].place, SWAP_SCHEDULE_OUT);
	assert_int_equal(m.t[first].place, SWAP_SCHEDULE_OUT);
	assert_int_equal(m.t[second].place, SWAP_SCHEDULE_OUT);
	model_run(60 * S);
	assert_true(m.t[late].served_ns > 0);
	assert_true(model_was_within());
}

/* Memory that is reserved on one card leaves the other open. */
static void test_bounds_are_a_card_each(void **state)
{
	struct swap_schedule_observation in = { .place = SWAP_SCHEDULE_IN,
						.part_count = 2,
						.part = { { 0, 0, GIB, 0 }, { 1, 0, GIB, 0 } } };
	struct swap_schedule_observation out = { .place = SWAP_SCHEDULE_OUT,
						 .part_count = 1,
						 .part = { { 1, 0, 30 * GIB, 0 } },
						 .has_work = true };

	model_start(100 * GIB, 40e9, 1);
	int a = swap_schedule_add(&m.r, true, m.now), b = swap_schedule_add(&m.r, false, m.now);
	swap_schedule_observe(&m.r, a, &in, m.now);
	swap_schedule_observe(&m.r, b, &out, m.now);
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now);
	assert_true(m.r.tenant[b].should_be_in);
	assert_true(swap_schedule_may_take(&m.r, a, 0) == UINT64_MAX);
	assert_true(swap_schedule_may_take(&m.r, a, 1) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fits_together_stays),
		cmocka_unit_test(test_two_that_do_not_fit_take_turns),
		cmocka_unit_test(test_turns_by_weight),
		cmocka_unit_test(test_the_weight_of_the_idle_is_none),
		cmocka_unit_test(test_slow_moves_make_long_turns),
		cmocka_unit_test(test_the_idle_leave_first),
		cmocka_unit_test(test_the_idle_stay_out_while_another_grows),
		cmocka_unit_test(test_room_is_reserved_for_its_request),
		cmocka_unit_test(test_a_refusing_tenant_is_skipped),
		cmocka_unit_test(test_hope),
		cmocka_unit_test(test_a_silent_tenant_is_skipped),
		cmocka_unit_test(test_a_slow_move_is_awaited),
		cmocka_unit_test(test_a_served_tenant_has_a_turn),
		cmocka_unit_test(test_reserved_memory_is_granted_to_no_other),
		cmocka_unit_test(test_swapped_out_by_hand_stays_out),
		cmocka_unit_test(test_a_request_that_can_never_fit_is_let_in_and_refused),
		cmocka_unit_test(test_a_momentary_figure_frees_no_place),
		cmocka_unit_test(test_a_return_whose_room_was_taken_is_called_off),
		cmocka_unit_test(test_a_tenant_of_two_cards),
		cmocka_unit_test(test_a_wait_for_two_cards_is_not_overtaken),
		cmocka_unit_test(test_bounds_are_a_card_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
