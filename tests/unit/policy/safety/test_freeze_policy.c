/* The policy by itself: single decisions, then random scenes on virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/safety/freeze_policy.h"

#define GIB (UINT64_C(1) << 30)
#define S UINT64_C(1000000000)

static const struct freeze_config config = {
	.threshold_bytes = 2 * GIB,
	.settle_ns = 2 * S,
	.bounds = { ORDER_PATIENCE_NS, ORDER_PASSES_MOST },
};

static struct freeze_item make(uint32_t id, double use_ns)
{
	return (struct freeze_item){ .cards = 1,
				     .key = { .use_ns = use_ns, .arrival = id, .id = id } };
}

static void test_room_lets_it_go(void **state)
{
	struct freeze_item a = make(1, 0), *items[] = { &a };
	struct freeze_card card = { .free_bytes = 2 * GIB };
	freeze_start(&config, &card, 1, items, 1, &a, true, S);
	assert_int_equal(a.phase, FREEZE_STARTING);
	assert_false(freeze_is_held(&a));
}

static void test_old_figures_make_it_ask(void **state)
{
	struct freeze_item a = make(1, 0), *items[] = { &a };
	struct freeze_card card = { .free_bytes = 100 * GIB };
	freeze_start(&config, &card, 1, items, 1, &a, false, S);
	assert_true(freeze_is_held(&a));
	assert_null(freeze_next(&config, &card, 1, items, 1, S));
	freeze_start(&config, &card, 1, items, 1, &a, true, S);
	assert_false(freeze_is_held(&a));
}

static void test_one_that_starts_keeps_its_room(void **state)
{
	struct freeze_item a = make(1, 0), b = make(2, 0), *items[] = { &a, &b };
	struct freeze_card card = { .free_bytes = 3 * GIB };
	freeze_start(&config, &card, 1, items, 2, &a, true, S);
	freeze_start(&config, &card, 1, items, 2, &b, true, S);
	assert_int_equal(a.phase, FREEZE_STARTING);
	assert_int_equal(b.phase, FREEZE_WAITING);
	/* It has what it needs, and as much is left. */
	card.free_bytes = 2 * GIB;
	freeze_note_memory(&a, 2 * GIB, 2 * S);
	assert_null(freeze_next(&config, &card, 1, items, 2, 4 * S - 1));
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 2, 4 * S), &b);
	assert_int_equal(a.phase, FREEZE_SETTLED);
}

/* Its context was all that the machine let it make so far. */
static void test_one_that_lacks_most_of_it_is_waited_for(void **state)
{
	struct freeze_item a = make(1, 0), b = make(2, 0), *items[] = { &a, &b };
	struct freeze_card card = { .free_bytes = 2 * GIB };
	freeze_start(&config, &card, 1, items, 2, &a, true, S);
	freeze_start(&config, &card, 1, items, 2, &b, true, S);
	freeze_note_memory(&a, GIB / 2, 2 * S);
	card.free_bytes = 5 * GIB / 2;
	assert_null(freeze_next(&config, &card, 1, items, 2, 10 * S - 1));
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 2, 10 * S), &b);
}

static void test_an_empty_card_has_room(void **state)
{
	struct freeze_item a = make(1, 0), b = make(2, 0), *items[] = { &a, &b };
	struct freeze_card card = { .free_bytes = GIB, .is_empty = true };
	freeze_start(&config, &card, 1, items, 2, &a, true, S);
	freeze_start(&config, &card, 1, items, 2, &b, true, S);
	assert_int_equal(a.phase, FREEZE_STARTING);
	assert_int_equal(b.phase, FREEZE_WAITING);
	freeze_end(&a);
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 2, S), &b);
}

static void test_order_of_thaw(void **state)
{
	struct freeze_item a = make(1, 5e9), b = make(2, 1e9), c = make(3, 3e9);
	struct freeze_item *items[] = { &a, &b, &c };
	struct freeze_card card = { .free_bytes = 0 };
	for (unsigned i = 0; i < 3; i++)
		freeze_start(&config, &card, 1, items, 3, items[i], true, S);
	card.free_bytes = 10 * GIB;
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 3, S), &b);
	assert_null(freeze_next(&config, &card, 1, items, 3, S));
	freeze_note_memory(&b, GIB, S);
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 3, 3 * S), &c);
	freeze_end(&c);
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 3, 3 * S), &a);
}

static void test_a_newcomer_waits_behind_those_that_wait(void **state)
{
	struct freeze_item a = make(1, 5e9), b = make(2, 0), *items[] = { &a, &b };
	struct freeze_card card = { .free_bytes = 0 };
	freeze_start(&config, &card, 1, items, 2, &a, true, S);
	card.free_bytes = 10 * GIB;
	freeze_start(&config, &card, 1, items, 2, &b, true, S);
	assert_true(freeze_is_held(&b));
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 2, S), &b);
	assert_int_equal(a.key.passes, 1);
}

static void test_often_overtaken_is_next(void **state)
{
	struct freeze_item a = make(1, 5e9);
	struct freeze_card card = { .free_bytes = 0 };
	struct freeze_item *items[2] = { &a };
	freeze_start(&config, &card, 1, items, 1, &a, true, S);
	card.free_bytes = 10 * GIB;
	for (uint32_t i = 0; i <= ORDER_PASSES_MOST; i++) {
		struct freeze_item b = make(2 + i, 0);
		items[1] = &b;
		freeze_start(&config, &card, 1, items, 2, &b, true, S);
		struct freeze_item *next = freeze_next(&config, &card, 1, items, 2, S);
		assert_ptr_equal(next, i < ORDER_PASSES_MOST ? &b : &a);
	}
}

static void test_cards_are_apart(void **state)
{
	struct freeze_item a = make(1, 0), b = make(2, 5e9), c = make(3, 9e9);
	struct freeze_item *items[] = { &a, &b, &c };
	struct freeze_card cards[2] = { { .free_bytes = 0 }, { .free_bytes = 8 * GIB } };
	b.cards = 2;
	c.cards = 3;
	freeze_start(&config, cards, 2, items, 3, &a, true, S);
	freeze_start(&config, cards, 2, items, 3, &b, true, S);
	assert_true(freeze_is_held(&a));
	assert_false(freeze_is_held(&b));
	/* A container that waits for GPU 0 delays none on GPU 1. */
	freeze_start(&config, cards, 2, items, 3, &c, true, S);
	assert_false(freeze_is_held(&c));
}

static void test_overdue_keeps_its_card(void **state)
{
	struct freeze_item a = make(1, 9e9), b = make(2, 0), *items[] = { &a, &b };
	struct freeze_card cards[2] = { { .free_bytes = 0 }, { .free_bytes = 0 } };
	b.cards = 3;
	freeze_start(&config, cards, 2, items, 2, &a, true, S);
	freeze_start(&config, cards, 2, items, 2, &b, true, S);
	a.key.passes = ORDER_PASSES_MOST;
	cards[1].free_bytes = 8 * GIB;
	/* b could take either of them: not while one is kept. */
	assert_null(freeze_next(&config, cards, 2, items, 2, S));
	cards[0].free_bytes = 8 * GIB;
	assert_ptr_equal(freeze_next(&config, cards, 2, items, 2, S), &a);
}

static void test_frozen_by_hand_delays_none(void **state)
{
	struct freeze_item a = make(1, 0), b = make(2, 5e9), *items[] = { &a, &b };
	struct freeze_card card = { .free_bytes = 0 };
	freeze_start(&config, &card, 1, items, 2, &a, true, S);
	freeze_start(&config, &card, 1, items, 2, &b, true, S);
	a.by_hand = true;
	card.free_bytes = 8 * GIB;
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 2, S), &b);
	assert_null(freeze_next(&config, &card, 1, items, 2, 100 * S));
}

static void test_once_running_it_is_let_be(void **state)
{
	struct freeze_item a = make(1, 0), *items[] = { &a };
	struct freeze_card card = { .free_bytes = 8 * GIB };
	freeze_start(&config, &card, 1, items, 1, &a, true, S);
	freeze_note_memory(&a, GIB, 2 * S);
	freeze_next(&config, &card, 1, items, 1, 9 * S);
	card.free_bytes = 0;
	freeze_start(&config, &card, 1, items, 1, &a, true, 9 * S);
	assert_int_equal(a.phase, FREEZE_SETTLED);
	freeze_end(&a);
	freeze_start(&config, &card, 1, items, 1, &a, true, 10 * S);
	assert_true(freeze_is_held(&a));
}

static void test_seen_late(void **state)
{
	struct freeze_item a = make(1, 0), b = make(2, 5e9), c = make(3, 7e9);
	struct freeze_item *items[] = { &a, &b, &c };
	struct freeze_card card = { .free_bytes = GIB / 2, .is_empty = true };
	c.phase = FREEZE_SETTLED;
	/* It has all that it wants; the others have some of it. */
	freeze_note_memory(&a, 2 * GIB, S);
	freeze_note_memory(&b, GIB, S);
	freeze_start(&config, &card, 1, items, 3, &a, true, S);
	assert_int_equal(a.phase, FREEZE_STARTING);
	freeze_start(&config, &card, 1, items, 3, &b, true, S);
	assert_int_equal(b.phase, FREEZE_WAITING);
	/* It lacks less than a container that starts. */
	card.free_bytes = GIB;
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 3, 3 * S), &b);
}

static void test_those_that_hold_some_do_not_wait_for_each_other(void **state)
{
	struct freeze_item a = make(1, 0), b = make(2, 5e9), *items[] = { &a, &b };
	struct freeze_card card = { .free_bytes = 0, .is_empty = false };
	freeze_note_memory(&a, GIB, S);
	freeze_note_memory(&b, GIB, S);
	freeze_start(&config, &card, 1, items, 2, &a, true, S);
	freeze_start(&config, &card, 1, items, 2, &b, true, S);
	/* Another tenant holds the rest, and may end. */
	assert_null(freeze_next(&config, &card, 1, items, 2, S));
	card.is_empty = true;
	assert_ptr_equal(freeze_next(&config, &card, 1, items, 2, S), &a);
	assert_null(freeze_next(&config, &card, 1, items, 2, 2 * S));
}

/* ---- random scenes ---- */

#define SCENE_CARDS 2
#define SCENE_ITEMS 12
#define STEP (S / 10)

struct runner {
	struct freeze_item item;
	unsigned card;
	uint64_t start_ns, need_bytes, chunk_bytes, gap_ns, run_ns;
	uint64_t next_ns, full_ns, got_bytes; /* of its own progress, while it is not frozen */
	bool came, ended;
};

static uint64_t draw(uint64_t *seed, uint64_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*seed >> 33) % below;
}

/* Needs below the threshold, and pauses below the settle time: the policy's guarantee is for these. */
static void draw_runner(struct runner *r, uint64_t *seed, uint32_t id)
{
	*r = (struct runner){ .item = make(id, (double)draw(seed, 10) * 1e9) };
	r->card = (unsigned)draw(seed, SCENE_CARDS);
	/* Some may use both cards and choose when they begin. */
	r->item.cards = draw(seed, 4) ? UINT64_C(1) << r->card : 3;
	r->start_ns = draw(seed, 20) * S;
	r->need_bytes = GIB / 8 * (1 + draw(seed, 16));
	r->chunk_bytes = GIB / 8 * (1 + draw(seed, 8));
	r->gap_ns = draw(seed, 19) * STEP;
	r->run_ns = draw(seed, 60) * S;
}

/* Of two GPUs with room it chooses the one with more room on which no container starts. */
static unsigned choose_card(const struct runner *all, const uint64_t *used, const uint64_t *size,
			    const struct runner *r)
{
	int64_t left[SCENE_CARDS];
	if (r->item.cards != 3)
		return r->card;
	for (unsigned c = 0; c < SCENE_CARDS; c++) {
		left[c] = (int64_t)(size[c] - used[c]);
		for (unsigned i = 0; i < SCENE_ITEMS; i++)
			if (&all[i] != r && all[i].item.phase == FREEZE_STARTING &&
			    (all[i].item.cards >> c & 1) && all[i].got_bytes < all[i].need_bytes)
				left[c] -= (int64_t)(config.threshold_bytes - all[i].got_bytes);
	}
	return left[0] >= left[1] ? 0 : 1;
}

static void advance(struct runner *all, struct runner *r, uint64_t *used, const uint64_t *size,
		    uint64_t now_ns)
{
	if (!r->came || r->ended || freeze_is_held(&r->item) || now_ns < r->next_ns)
		return;
	if (r->got_bytes < r->need_bytes) {
		uint64_t chunk = r->need_bytes - r->got_bytes;
		chunk = chunk < r->chunk_bytes ? chunk : r->chunk_bytes;
		if (!r->got_bytes)
			r->card = choose_card(all, used, size, r);
		used[r->card] += chunk;
		r->got_bytes += chunk;
		if (used[r->card] > size[r->card])
			fail_msg("card %u: %g GiB used of %g", r->card,
				 (double)used[r->card] / (double)GIB,
				 (double)size[r->card] / (double)GIB);
		r->next_ns = now_ns + r->gap_ns;
		r->full_ns = now_ns;
		freeze_note_memory(&r->item, r->got_bytes, now_ns);
		return;
	}
	if (now_ns >= r->full_ns + r->run_ns) {
		used[r->card] -= r->got_bytes;
		r->ended = true;
		freeze_end(&r->item);
	}
}

/* The next container has used the least GPU time of those that wait for that GPU alone, or was overtaken often. */
static void check_order(const struct runner *all, const struct freeze_item *next)
{
	for (unsigned i = 0; i < SCENE_ITEMS; i++) {
		const struct freeze_item *x = &all[i].item;
		if (x->phase == FREEZE_WAITING && x->cards == next->cards &&
		    next->key.passes < ORDER_PASSES_MOST)
			assert_true(x->key.use_ns >= next->key.use_ns);
	}
}

static void run_scene(uint64_t seed)
{
	struct runner all[SCENE_ITEMS];
	struct freeze_item *items[SCENE_ITEMS];
	uint64_t used[SCENE_CARDS] = { 0 }, size[SCENE_CARDS], now_ns = S;
	unsigned ended = 0;
	for (unsigned c = 0; c < SCENE_CARDS; c++)
		size[c] = 2 * GIB + GIB / 2 * draw(&seed, 8);
	for (unsigned i = 0; i < SCENE_ITEMS; i++) {
		draw_runner(&all[i], &seed, i);
		items[i] = &all[i].item;
	}
	/* Twelve in a row, each with the longest run and the time to settle, take less. */
	for (; ended < SCENE_ITEMS && now_ns < 2000 * S; now_ns += STEP) {
		struct freeze_card cards[SCENE_CARDS];
		struct freeze_item *next;
		for (unsigned i = 0; i < SCENE_ITEMS; i++)
			advance(all, &all[i], used, size, now_ns);
		for (unsigned c = 0; c < SCENE_CARDS; c++)
			cards[c] = (struct freeze_card){ size[c] - used[c], true };
		for (unsigned i = 0; i < SCENE_ITEMS; i++) {
			struct runner *r = &all[i];
			if (r->ended || r->start_ns > now_ns)
				continue;
			if (!r->came)
				r->item.key.since_ns = now_ns;
			r->came = true;
			freeze_start(&config, cards, SCENE_CARDS, items, SCENE_ITEMS, &r->item,
				     draw(&seed, 3) > 0, now_ns);
		}
		while ((next = freeze_next(&config, cards, SCENE_CARDS, items, SCENE_ITEMS, now_ns)))
			check_order(all, next);
		ended = 0;
		for (unsigned i = 0; i < SCENE_ITEMS; i++)
			ended += all[i].ended;
	}
	assert_int_equal(ended, SCENE_ITEMS);
}

static void test_random_scenes(void **state)
{
	for (uint64_t seed = 1; seed <= 2000; seed++)
		run_scene(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room_lets_it_go),
		cmocka_unit_test(test_old_figures_make_it_ask),
		cmocka_unit_test(test_one_that_starts_keeps_its_room),
		cmocka_unit_test(test_one_that_lacks_most_of_it_is_waited_for),
		cmocka_unit_test(test_an_empty_card_has_room),
		cmocka_unit_test(test_order_of_thaw),
		cmocka_unit_test(test_a_newcomer_waits_behind_those_that_wait),
		cmocka_unit_test(test_often_overtaken_is_next),
		cmocka_unit_test(test_cards_are_apart),
		cmocka_unit_test(test_overdue_keeps_its_card),
		cmocka_unit_test(test_frozen_by_hand_delays_none),
		cmocka_unit_test(test_once_running_it_is_let_be),
		cmocka_unit_test(test_seen_late),
		cmocka_unit_test(test_those_that_hold_some_do_not_wait_for_each_other),
		cmocka_unit_test(test_random_scenes),
	};
	return cmocka_run_group_tests_name("freeze_policy", tests, NULL, NULL);
}
