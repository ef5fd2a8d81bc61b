#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/arbitrate/lease_spans.h"

#define LEASE ((struct lease_span_state){ 0 })
#define FREE ((struct lease_span_state){ .is_free = true })

#define LATER 1000000

static size_t since(const struct lease_spans *s, uint64_t *told, struct lease_span *list)
{
	return lease_spans_since(s, *told, LATER, list, told);
}

static void test_which_tenant_had_the_lease(void **state)
{
	struct lease_spans s = { 0 };
	struct lease_span list[LEASE_SPANS_MAX];
	uint64_t told = 0;
	assert_int_equal(since(&s, &told, list), 0);
	lease_spans_note(&s, 10, "a", 1, LEASE);
	lease_spans_note(&s, 15, "a", 1, LEASE);
	lease_spans_note(&s, 20, NULL, 0, LEASE);
	lease_spans_note(&s, 25, NULL, 0, LEASE);
	lease_spans_note(&s, 30, "b", 2, FREE);
	assert_int_equal(since(&s, &told, list), 2);
	assert_string_equal(list[0].tenant, "a");
	assert_int_equal(list[0].begin_ns, 10);
	assert_int_equal(list[0].end_ns, 20);
	assert_false(list[0].is_free);
	assert_string_equal(list[1].tenant, "b");
	assert_int_equal(list[1].end_ns, 0);
	assert_true(list[1].is_free);
}

static void test_an_open_span_is_reported_again(void **state)
{
	struct lease_spans s = { 0 };
	struct lease_span list[LEASE_SPANS_MAX];
	uint64_t told = 0;
	lease_spans_note(&s, 10, "a", 1, LEASE);
	assert_int_equal(since(&s, &told, list), 1);
	assert_int_equal(since(&s, &told, list), 1);
	/* Another lease of the same tenant is another span. */
	lease_spans_note(&s, 20, "a", 3, LEASE);
	assert_int_equal(since(&s, &told, list), 2);
	assert_int_equal(list[0].end_ns, 20);
	lease_spans_note(&s, 30, NULL, 0, LEASE);
	assert_int_equal(since(&s, &told, list), 1);
	assert_int_equal(list[0].number, 2);
	assert_int_equal(since(&s, &told, list), 0);
}

/* The arbiter's thread is ahead of the time that the reader asks for. */
static void test_later_spans_are_left_for_the_next_call(void **state)
{
	struct lease_spans s = { 0 };
	struct lease_span list[LEASE_SPANS_MAX];
	uint64_t told = 0;
	lease_spans_note(&s, 10, "a", 1, LEASE);
	lease_spans_note(&s, 20, "b", 2, LEASE);
	lease_spans_note(&s, 30, "a", 3, LEASE);
	assert_int_equal(lease_spans_since(&s, told, 5, list, &told), 0);
	assert_int_equal(told, 0);
	assert_int_equal(lease_spans_since(&s, told, 15, list, &told), 1);
	assert_int_equal(list[0].end_ns, 0);
	assert_int_equal(told, 0);
	assert_int_equal(lease_spans_since(&s, told, 20, list, &told), 2);
	assert_int_equal(list[0].end_ns, 20);
	assert_int_equal(list[1].end_ns, 0);
	assert_int_equal(told, 1);
	assert_int_equal(lease_spans_since(&s, told, 40, list, &told), 2);
	assert_int_equal(list[0].end_ns, 30);
	assert_int_equal(told, 2);
}

/* Watched anew, numbers begin anew. */
static void test_reported_spans_of_others_are_forgotten(void **state)
{
	struct lease_spans s = { 0 };
	struct lease_span list[LEASE_SPANS_MAX];
	uint64_t told = 7;
	lease_spans_note(&s, 10, "a", 1, LEASE);
	assert_int_equal(since(&s, &told, list), 0);
	assert_int_equal(told, 1);
}

static void test_how_it_ended(void **state)
{
	struct lease_spans s = { 0 };
	struct lease_span list[LEASE_SPANS_MAX];
	struct lease_span_state closing = { .is_closing = true };
	struct lease_span_state ended = { .end = { ARBITER_END_CAP, .with_step = true,
						   .expired = true } };
	uint64_t told = 0;
	lease_spans_note(&s, 10, "a", 1, LEASE);
	lease_spans_note(&s, 20, "a", 1, closing);
	assert_int_equal(since(&s, &told, list), 1);
	assert_int_equal(list[0].closing_ns, 20);
	/* Opened again, and closed for good. */
	lease_spans_note(&s, 25, "a", 1, LEASE);
	lease_spans_note(&s, 30, "a", 1, closing);
	lease_spans_note(&s, 35, "a", 1, closing);
	lease_spans_note(&s, 40, NULL, 0, ended);
	assert_int_equal(since(&s, &told, list), 1);
	assert_int_equal(list[0].closing_ns, 30);
	assert_int_equal(list[0].end_ns, 40);
	assert_int_equal(list[0].end.why, ARBITER_END_CAP);
	assert_true(list[0].end.with_step && list[0].end.expired);
	/* A tenant that ran alone had no lease that could end for a reason. */
	lease_spans_note(&s, 50, "b", 2, FREE);
	lease_spans_note(&s, 60, "a", 3, ended);
	assert_int_equal(since(&s, &told, list), 2);
	assert_int_equal(list[0].end.why, ARBITER_END_UNKNOWN);
	assert_false(list[0].end.with_step || list[0].end.expired);
}

static void test_what_began_before_anybody_watched(void **state)
{
	struct lease_spans s = { 0 }, other = { 0 };
	struct lease_span list[LEASE_SPANS_MAX];
	uint64_t told = 0;
	lease_spans_note(&s, 10, "a", 1, LEASE);
	lease_spans_note(&s, 20, "b", 2, LEASE);
	assert_int_equal(since(&s, &told, list), 2);
	assert_true(list[0].began_earlier);
	assert_false(list[1].began_earlier);
	/* No tenant had the lease at first. */
	told = 0;
	lease_spans_note(&other, 10, NULL, 0, LEASE);
	lease_spans_note(&other, 20, "a", 1, LEASE);
	assert_int_equal(since(&other, &told, list), 1);
	assert_false(list[0].began_earlier);
}

static void test_the_oldest_are_forgotten(void **state)
{
	struct lease_spans s = { 0 };
	struct lease_span list[LEASE_SPANS_MAX];
	uint64_t told = 0;
	for (uint64_t i = 1; i <= 3 * LEASE_SPANS_MAX; i++)
		lease_spans_note(&s, i, i % 2 ? "a" : "b", i, LEASE);
	assert_int_equal(since(&s, &told, list), LEASE_SPANS_MAX);
	assert_int_equal(list[0].number, 2 * LEASE_SPANS_MAX + 1);
	assert_int_equal(lease_spans_lost(0, told, list, LEASE_SPANS_MAX), 2 * LEASE_SPANS_MAX);
	for (size_t i = 0; i < LEASE_SPANS_MAX; i++) {
		assert_int_equal(list[i].begin_ns, list[i].number);
		assert_int_equal(list[i].end_ns, i + 1 < LEASE_SPANS_MAX ? list[i].number + 1 : 0);
	}
	uint64_t before = told;
	assert_int_equal(since(&s, &told, list), 1);
	assert_int_equal(lease_spans_lost(before, told, list, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_tenant_had_the_lease),
		cmocka_unit_test(test_an_open_span_is_reported_again),
		cmocka_unit_test(test_later_spans_are_left_for_the_next_call),
		cmocka_unit_test(test_reported_spans_of_others_are_forgotten),
		cmocka_unit_test(test_how_it_ended),
		cmocka_unit_test(test_what_began_before_anybody_watched),
		cmocka_unit_test(test_the_oldest_are_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
