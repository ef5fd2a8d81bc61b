/* When a card is well and when not, on pretended time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "policy/safety/health_policy.h"

#define SEC UINT64_C(1000000000)

static const struct health_ignored none;
static struct health_time at(uint64_t s)
{
	return (struct health_time){ .now_ns = s * SEC, .now_s = 1e9 + (double)s };
}

static const char *reason(const struct health *h)
{
	static char text[HEALTH_REASON_MAX];
	health_reason(h, text);
	return text;
}

static void test_xids(void **state)
{
	static const struct {
		uint64_t number;
		bool is_bad;
		const char *reason;
	} rows[] = {
		{ 13, false, "" },
		{ 31, false, "" },
		{ 63, false, "" },
		{ 94, false, "" },
		{ 48, true, "Xid 48: double-bit ECC error" },
		{ 79, true, "the driver reports that the GPU is lost" },
		{ 5000, true,
		  "Xid 5000: unknown to allot, so it counts as a fault of the GPU (health_ignore_xids can exempt it)" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct health h = { 0 };
		struct health_time now = at(7);
		assert_int_equal(health_note_xid(&h, rows[i].number, &none, &now), rows[i].is_bad);
		assert_int_equal(h.is_bad, rows[i].is_bad);
		assert_string_equal(reason(&h), rows[i].reason);
		assert_int_equal(h.since_ns, rows[i].is_bad ? 7 * SEC : 0);
	}
}

static void test_ignored(void **state)
{
	static const char *const bad[] = { "", ",", "1,", "x", "1 2", "-1", "0", "100000", "1,,2" };
	static const char too_many[] = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,"
				       "22,23,24,25,26,27,28,29,30,31,32,33";
	struct health_ignored list = { .count = 9 };
	struct health h = { 0 };
	struct health_time now = at(1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(health_parse_ignored(bad[i], &list, NULL), -22);
	assert_int_equal(health_parse_ignored(too_many, &list, NULL), -22);
	assert_int_equal(list.count, 9);
	assert_int_equal(health_parse_ignored("none", &list, NULL), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(health_parse_ignored("79,48", &list, NULL), 0);
	assert_false(health_note_xid(&h, 79, &list, &now));
	assert_false(health_note_xid(&h, 48, &list, &now));
	assert_true(health_note_xid(&h, 62, &list, &now));
}

/* A reported fault stays, whatever the GPU answers, until it is cured or its time is over. */
static void test_faults_stay(void **state)
{
	struct health h = { 0 };
	struct health_time now = at(10);
	assert_true(health_note_ecc(&h, &now));
	assert_false(health_note_xid(&h, 48, &none, &now));
	assert_string_equal(reason(&h), "double-bit ECC error");
	for (unsigned i = 0; i < 10; i++)
		assert_false(health_note_answer(&h, HEALTH_ANSWERED, &now));
	now = at(100);
	assert_false(health_pass_time(&h, 0, &now));
	assert_false(health_note_ecc(&h, &now)); /* another one: the time begins anew */
	now = at(99);                            /* read just before it came */
	assert_false(health_pass_time(&h, 30 * SEC, &now));
	now = at(129);
	assert_false(health_pass_time(&h, 30 * SEC, &now));
	now = at(130);
	assert_true(health_pass_time(&h, 30 * SEC, &now));
	assert_false(h.is_bad);
	assert_int_equal(h.since_ns, 130 * SEC);
	assert_true(health_note_ecc(&h, &now));
	assert_true(health_clear_fault(&h, &now));
	assert_false(health_clear_fault(&h, &now));
}

static void test_answers(void **state)
{
	struct health h = { 0 };
	struct health_time now = at(1);
	/* One failure between good answers does not count. */
	for (unsigned i = 0; i < 10; i++) {
		assert_false(health_note_answer(&h, HEALTH_FAILED, &now));
		assert_false(health_note_answer(&h, HEALTH_FAILED, &now));
		assert_false(health_note_answer(&h, HEALTH_ANSWERED, &now));
	}
	assert_false(health_note_answer(&h, HEALTH_FAILED, &now));
	assert_false(health_note_answer(&h, HEALTH_FAILED, &now));
	assert_true(health_note_answer(&h, HEALTH_FAILED, &now));
	assert_string_equal(reason(&h), "calls to the driver about this GPU fail");
	assert_false(health_note_answer(&h, HEALTH_ANSWERED, &now));
	assert_false(health_note_answer(&h, HEALTH_ANSWERED, &now));
	assert_false(health_note_answer(&h, HEALTH_FAILED, &now)); /* from the beginning */
	assert_false(health_note_answer(&h, HEALTH_ANSWERED, &now));
	assert_false(health_note_answer(&h, HEALTH_ANSWERED, &now));
	assert_true(health_note_answer(&h, HEALTH_ANSWERED, &now));
	/* Lost, or silent: at once. */
	assert_true(health_note_answer(&h, HEALTH_SAYS_LOST, &now));
	assert_string_equal(reason(&h), "the driver reports that the GPU is lost");
	assert_false(health_note_answer(&h, HEALTH_SILENT, &now));
	assert_false(health_note_answer(&h, HEALTH_ANSWERED, &now));
	assert_false(health_note_answer(&h, HEALTH_ANSWERED, &now));
	assert_true(health_note_answer(&h, HEALTH_ANSWERED, &now));
	assert_string_equal(reason(&h), "");
	/* A cure restores neither a lost GPU nor a report that an answer has replaced. */
	health_note_answer(&h, HEALTH_SAYS_LOST, &now);
	health_note_ecc(&h, &now);
	assert_false(health_clear_fault(&h, &now));
	assert_string_equal(reason(&h), "the driver reports that the GPU is lost");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xids),
		cmocka_unit_test(test_ignored),
		cmocka_unit_test(test_faults_stay),
		cmocka_unit_test(test_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
