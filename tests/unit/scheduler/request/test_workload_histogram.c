/* What is asked for: which requests are of one kind, how they fade, and what the room for them is worth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/request/workload_histogram.h"

static struct place_request asking(uint32_t cores_pct)
{
	return (struct place_request){ .count = 1,
				       .memory_bytes = UINT64_C(1) << 30,
				       .cores_mpct = cores_pct * 1000 };
}

static bool is_near(double a, double b)
{
	return a > b * (1 - 1e-6) && a < b * (1 + 1e-6);
}

static void count(struct histogram *histogram, struct place_request request, int expected)
{
	unsigned kind = 99;
	assert_int_equal(histogram_count(histogram, &request, &kind), expected);
	assert_true(expected == 1 ? kind < histogram->kinds.count : kind == 99);
}

static void kinds(void **state)
{
	static const char *const t4[] = { "T4" }, *const v100[] = { "V100" };
	struct histogram histogram = { 0 };
	char word[8] = "T4";
	const char *copy[] = { word };
	struct place_request request = asking(20);
	count(&histogram, request, 1);
	/* Order and UUIDs are no kind's; memory in percent is not that in bytes. */
	request.evaluator[request.evaluator_count++] = "spread";
	request.use_uuid = (struct place_words){ t4, 1 };
	request.memory_pct = 50;
	count(&histogram, request, 0);
	request.memory = PLACE_MEMORY_PCT;
	count(&histogram, request, 1);
	request.count = 2;
	count(&histogram, request, 1);
	request.use_type = (struct place_words){ copy, 1 };
	count(&histogram, request, 1);
	/* The words are its own. */
	word[0] = 'X';
	request.use_type = (struct place_words){ t4, 1 };
	count(&histogram, request, 0);
	request.use_type = (struct place_words){ v100, 1 };
	count(&histogram, request, 1);
	request.nouse_type = (struct place_words){ t4, 1 };
	count(&histogram, request, 1);
	assert_int_equal(histogram.kinds.count, 6);
	/* More than a card's time is the card alone. */
	count(&histogram, asking(100), 1);
	count(&histogram, asking(120), 0);
	histogram_free(&histogram);
	assert_int_equal(histogram.kinds.count, 0);
}

static void too_many_words(void **state)
{
	static char text[5000];
	const char *words[] = { text };
	struct histogram histogram = { 0 };
	struct place_request request = asking(20);
	memset(text, 'x', sizeof(text) - 1);
	request.use_type = (struct place_words){ words, 1 };
	count(&histogram, request, 0);
	assert_int_equal(histogram.kinds.count, 0);
	histogram_free(&histogram);
}

static void prices(void **state)
{
	const uint64_t room[PLACE_KINDS_MAX] = { 9, 0 };
	struct histogram histogram = { 0 };
	count(&histogram, asking(20), 1);
	for (unsigned i = 0; i < 3; i++)
		count(&histogram, asking(30), !i);
	histogram_price(&histogram, room);
	/* A quarter and three quarters, but for what one request fades by the next. */
	assert_true(histogram.kinds.kind[0].price > 0.2495 / 10 &&
		    histogram.kinds.kind[0].price < 0.25 / 10);
	assert_true(histogram.kinds.kind[1].price > 0.75 && histogram.kinds.kind[1].price < 0.7505);
	histogram_free(&histogram);
}

static void fading(void **state)
{
	struct histogram histogram = { 0 };
	for (unsigned i = 0; i < 100; i++)
		count(&histogram, asking(20), !i);
	double before = histogram.count[0] / histogram.unit;
	for (unsigned i = 0; i < HISTOGRAM_HALF_LIFE; i++)
		count(&histogram, asking(30), !i);
	assert_true(is_near(histogram.count[0] / histogram.unit, before / 2));
	/* Units change, and what they measure does not: a kind that all ask for counts as the sum of what fades. */
	for (unsigned i = 0; i < 40 * HISTOGRAM_HALF_LIFE; i++)
		count(&histogram, asking(30), 0);
	assert_true(histogram.unit < 1e10 && is_near(histogram.count[1] / histogram.unit,
						     1 / (1 - 1 / 1.000693387462580632)));
	assert_true(histogram.count[0] / histogram.unit < 1e-9);
	histogram_free(&histogram);
}

/* One more than there is place for: the one that counts least goes, and no other. */
static void too_many(void **state)
{
	struct histogram histogram = { 0 };
	unsigned kind;
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < PLACE_KINDS_MAX; i++)
			if (!round || i != 7)
				count(&histogram, asking(i + 1), !round);
	struct place_request request = asking(90);
	/* Not for one that comes once, and not for many of which each does. */
	for (unsigned i = 0; i < 2 * HISTOGRAM_ONCE; i++) {
		struct place_request other = asking(60);
		other.memory_bytes += i;
		count(&histogram, other, 0);
	}
	count(&histogram, request, 0);
	assert_int_equal(histogram_count(&histogram, &request, &kind), 1);
	assert_int_equal(kind, 7);
	assert_int_equal(histogram.kinds.count, PLACE_KINDS_MAX);
	assert_int_equal(histogram.kinds.kind[7].request.cores_mpct, 90000);
	count(&histogram, asking(7), 0);
	count(&histogram, asking(8), 0);
	count(&histogram, asking(8), 1);
	histogram_free(&histogram);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kinds),
					    cmocka_unit_test(too_many_words),
					    cmocka_unit_test(prices), cmocka_unit_test(fading),
					    cmocka_unit_test(too_many) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
