/* Cards as equal slices: names, worth, and which of them are preferred. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/kubelet/devices/slices.h"

#define MIB (UINT64_C(1) << 20)
#define A "GPU-00000000-0000-0000-0000-00000000000a"
#define B "GPU-00000000-0000-0000-0000-00000000000b"
#define C "GPU-00000000-0000-0000-0000-00000000000c"
#define D "MIG-00000000-0000-0000-0000-00000000000d"

static const struct slices three = { .card_count = 3, .per_card = 10, .uuid = { A, B, C } };

/* ---- names ---- */

static void test_names(void **state)
{
	const struct slices all = { .card_count = 4, .per_card = 100, .uuid = { A, B, C, D } };
	char id[SLICE_ID_MAX];
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 100; k++) {
			unsigned card = 9, number = 999;
			slice_format(&all, i, k, id);
			assert_int_equal(slice_parse(&all, id, &card, &number, NULL), 0);
			assert_int_equal(card, i);
			assert_int_equal(number, k);
		}
	slice_format(&all, 3, 99, id);
	assert_string_equal(id, D "-99");
	assert_true(slices_can_name(D));
	assert_true(slices_can_name("123456789012345678901234567890123456789012345678901234567890"));
	assert_false(
		slices_can_name("1234567890123456789012345678901234567890123456789012345678901"));
}

static void refuse(const char *id, const char *word)
{
	unsigned card = 77, number = 77;
	struct error err = { 0 };
	assert_int_equal(slice_parse(&three, id, &card, &number, &err), -EINVAL);
	assert_int_equal(card, 77);
	assert_int_equal(number, 77);
	char start[64];
	snprintf(start, sizeof(start), "%.50s", id);
	if (!strstr(err.text, word) || !strstr(err.text, start))
		fail_msg("'%s' does not say '%s' of '%s'", err.text, word, id);
}

static void test_wrong_names(void **state)
{
	refuse("", "must be a GPU of this node and a number, such as " A "-0");
	refuse("-", "must be a GPU of this node");
	refuse(A, "must be a GPU of this node");
	refuse(D "-1", "must be a GPU of this node");
	refuse(A "0-1", "must be a GPU of this node");
	refuse("gpu-00000000-0000-0000-0000-00000000000a-1", "must be a GPU of this node");
	refuse(A "-10", "must be 0 to 9");
	refuse(A "-", "must be 0 to 9");
	refuse(A "-01", "must be 0 to 9");
	refuse(A "-+1", "must be 0 to 9");
	refuse(A "- 1", "must be 0 to 9");
	refuse(A "-1 ", "must be 0 to 9");
	refuse(A "-100000000000000000000", "must be 0 to 9");
	refuse(A "-0x1", "must be 0 to 9");
	refuse(A "--1", "must be a GPU of this node");
	refuse(A "-1-1", "must be a GPU of this node");
}

static int parse_set(const char *const *ids, size_t count, struct slice_set *ret, struct error *err)
{
	return slice_set_parse(&three, (char *const *)(uintptr_t)ids, count, ret, err);
}

static void test_sets(void **state)
{
	const char *const ids[] = { B "-3", A "-9", B "-0", A "-9" };
	struct slice_set set;
	struct error err = { 0 };
	assert_int_equal(parse_set(ids, 3, &set, NULL), 0);
	assert_int_equal(slots_count(&set.card[0]), 1);
	assert_int_equal(slots_count(&set.card[1]), 2);
	assert_int_equal(slots_count(&set.card[2]), 0);
	assert_true(slots_has(&set.card[0], 9));
	assert_true(slots_has(&set.card[1], 0) && slots_has(&set.card[1], 3));
	assert_int_equal(parse_set(ids, 4, &set, &err), -EINVAL);
	assert_string_equal(err.text, "device '" A "-9' is named twice");
	assert_int_equal(parse_set(ids, 0, &set, NULL), 0);
	assert_int_equal(slots_count(&set.card[1]), 0);
}

/* ---- worth ---- */

static void test_worth(void **state)
{
	const uint64_t card_bytes = 143771 * MIB + 12345;
	for (unsigned per_card = 1; per_card <= SLICES_MAX_PER_CARD; per_card++) {
		struct slice_share one = slices_share(per_card, 1, card_bytes, true);
		struct slice_share all = slices_share(per_card, per_card, card_bytes, true);
		assert_true(one.memory_bytes % MIB == 0);
		assert_true(one.memory_bytes * per_card <= card_bytes);
		assert_true(card_bytes - one.memory_bytes * per_card <= per_card * (MIB + 1));
		assert_true(one.cores_pct * per_card <= 100.0001);
		assert_true(one.limit_pct == one.cores_pct);
		assert_true(all.memory_bytes == 143771 * MIB);
		assert_true(all.cores_pct == 100);
	}
	struct slice_share third = slices_share(3, 1, 1000 * MIB, false);
	assert_true(third.memory_bytes == 333 * MIB);
	assert_true(third.cores_pct == 33.33);
	assert_true(third.limit_pct == 100);
	assert_true(slices_share(3, 2, 1000 * MIB, true).limit_pct == 66.66);
}

/* ---- preference ---- */

/* "0-9" of a card as bits; a set of three cards. */
static struct slice_set set_of(unsigned a, unsigned b, unsigned c)
{
	struct slice_set set = { .card = { { { a } }, { { b } }, { { c } } } };
	return set;
}

#define ALL 0x3ff

static void prefer(struct slice_set available, struct slice_set must, unsigned size, unsigned a,
		   unsigned b, unsigned c)
{
	struct slice_set got;
	struct error err = { 0 };
	assert_int_equal(slices_prefer(&three, &available, &must, size, &got, &err), 0);
	assert_int_equal(got.card[0].bits[0], a);
	assert_int_equal(got.card[1].bits[0], b);
	assert_int_equal(got.card[2].bits[0], c);
}

static void test_preference(void **state)
{
	const struct slice_set none = set_of(0, 0, 0);
	/* The card that has least to spare. */
	prefer(set_of(ALL, 0x1f, ALL), none, 2, 0, 3, 0);
	prefer(set_of(ALL, 0x1f, 0xc0), none, 2, 0, 0, 0xc0);
	prefer(set_of(ALL, 1, 1), none, 2, 3, 0, 0);
	prefer(set_of(0x1f, ALL, 0x1f), none, 10, 0, ALL, 0);
	/* Two cards, where one is not enough; the rest on the card where it leaves least. */
	prefer(set_of(ALL, 0x1f, ALL), none, 12, ALL, 3, 0);
	prefer(set_of(0xf, 0x1f, 7), none, 6, 0, 0x1f, 1);
	prefer(set_of(ALL, ALL, ALL), none, 30, ALL, ALL, ALL);
	/* Cards that must be used are used first. */
	prefer(set_of(ALL, ALL, 3), set_of(0, 8, 0), 3, 0, 0xb, 0);
	prefer(set_of(ALL, 0x18, 3), set_of(0, 8, 0), 4, 0, 0x18, 3);
	prefer(set_of(ALL, 0x18, 0x30), set_of(1, 8, 0), 3, 1, 0x18, 0);
	prefer(set_of(ALL, ALL, ALL), set_of(1, 2, 4), 3, 1, 2, 4);
	prefer(set_of(ALL, ALL, ALL), none, 0, 0, 0, 0);
}

static void refuse_preference(struct slice_set available, struct slice_set must, unsigned size,
			      const char *text)
{
	struct slice_set got = set_of(7, 7, 7);
	struct error err = { 0 };
	assert_int_equal(slices_prefer(&three, &available, &must, size, &got, &err), -EINVAL);
	assert_string_equal(err.text, text);
	assert_int_equal(got.card[0].bits[0], 7);
}

static void test_impossible_preference(void **state)
{
	refuse_preference(
		set_of(1, 1, 0), set_of(0, 0, 0), 3,
		"the kubelet asks for 3 devices, but lists only 2 as available: restart the kubelet, then make the pod anew");
	refuse_preference(
		set_of(7, 0, 0), set_of(7, 0, 0), 2,
		"the kubelet asks for 2 devices, but says that the allocation must include 3");
	refuse_preference(set_of(7, 0, 0), set_of(0, 2, 0), 2,
			  "the kubelet says that the allocation must include device '" B
			  "-1', but does not list this device as available");
}

/* Compared with every set of cards: never more cards than needed, and exactly the requested number. */
static void test_fewest_cards(void **state)
{
	unsigned seed = 20261122;
	for (unsigned turn = 0; turn < 20000; turn++) {
		struct slice_set available = set_of(rand_r(&seed) & ALL, rand_r(&seed) & ALL,
						    rand_r(&seed) & rand_r(&seed) & ALL);
		struct slice_set must = { 0 }, got;
		unsigned there = 0, musts = 0, fewest = 4, count = 0, used = 0;
		for (unsigned i = 0; i < 3; i++) {
			must.card[i].bits[0] = available.card[i].bits[0] &
					       (unsigned)(rand_r(&seed) & rand_r(&seed) &
							  rand_r(&seed) & rand_r(&seed));
			there += slots_count(&available.card[i]);
			musts += slots_count(&must.card[i]);
		}
		unsigned size = musts + (unsigned)rand_r(&seed) % (there - musts + 1);
		for (unsigned cards = 0; cards < 8; cards++) {
			unsigned room = 0;
			bool has_musts = true;
			for (unsigned i = 0; i < 3; i++) {
				if (cards >> i & 1)
					room += slots_count(&available.card[i]);
				else
					has_musts &= !slots_count(&must.card[i]);
			}
			unsigned n = (unsigned)__builtin_popcount(cards);
			if (has_musts && room >= size && n < fewest)
				fewest = n;
		}
		assert_int_equal(slices_prefer(&three, &available, &must, size, &got, NULL), 0);
		for (unsigned i = 0; i < 3; i++) {
			count += slots_count(&got.card[i]);
			used += slots_count(&got.card[i]) > 0;
			assert_int_equal(got.card[i].bits[0] & ~available.card[i].bits[0], 0);
			assert_int_equal(must.card[i].bits[0] & ~got.card[i].bits[0], 0);
		}
		assert_int_equal(count, size);
		assert_int_equal(used, fewest);
	}
}

static void test_preferred_on_cards(void **state)
{
	const struct slice_set none = { 0 };
	struct slice_set all = { 0 }, got;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 10; k++)
			slots_add(&all.card[i], k);
	assert_int_equal(slices_prefer_on(&three, &all, &none, 8, 1 << 1 | 1 << 2, &got, NULL), 0);
	assert_int_equal(slots_count(&got.card[0]), 0);
	assert_int_equal(slots_count(&got.card[1]), 4);
	assert_int_equal(slots_count(&got.card[2]), 4);
	/* Devices that they lack belong to others; devices that must be included count. */
	assert_int_equal(slices_prefer_on(&three, &all, &none, 13, 1 << 1, &got, NULL), 0);
	assert_int_equal(slots_count(&got.card[1]), 10);
	assert_int_equal(slots_count(&got.card[0]) + slots_count(&got.card[2]), 3);
	struct slice_set must = { 0 };
	slots_add(&must.card[0], 7);
	assert_int_equal(slices_prefer_on(&three, &all, &must, 2, 1 << 1, &got, NULL), 0);
	assert_true(slots_has(&got.card[0], 7));
	assert_int_equal(slots_count(&got.card[1]), 1);
	slots_add(&must.card[1], 3);
	assert_int_equal(slices_prefer_on(&three, &all, &must, 2, 1 << 1, &got, NULL), 0);
	assert_true(slots_has(&got.card[0], 7) && slots_has(&got.card[1], 3));
	assert_int_equal(slices_prefer_on(&three, &all, &must, 1, 1 << 1, &got, NULL), -EINVAL);
	assert_int_equal(slices_prefer_on(&three, &all, &none, 31, 1 << 1, &got, NULL), -EINVAL);
	/* None are named: as without. */
	assert_int_equal(slices_prefer_on(&three, &all, &none, 3, 0, &got, NULL), 0);
	assert_int_equal(slots_count(&got.card[0]), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),        cmocka_unit_test(test_wrong_names),
		cmocka_unit_test(test_sets),         cmocka_unit_test(test_worth),
		cmocka_unit_test(test_preference),   cmocka_unit_test(test_impossible_preference),
		cmocka_unit_test(test_fewest_cards), cmocka_unit_test(test_preferred_on_cards),
	};
	return cmocka_run_group_tests_name("slices", tests, NULL, NULL);
}
