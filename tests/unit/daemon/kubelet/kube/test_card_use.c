/* A card's use over the last minutes: its peak, its present use, and which changes are worth reporting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/kubelet/kube/card_use.h"

static void add(struct card_use *use, int count, double pct)
{
	for (int i = 0; i < count; i++)
		card_use_add(use, pct);
}

static int peak(const struct card_use *use)
{
	return (int)(card_use_peak(use) + 0.5);
}

static int now(const struct card_use *use)
{
	return (int)(card_use_now(use) + 0.5);
}

static void test_peak_and_now(void **state)
{
	struct card_use use = { 0 };
	assert_int_equal(peak(&use) + now(&use), 0);
	card_use_add(&use, 50);
	assert_int_equal(peak(&use), 50);
	assert_int_equal(now(&use), 50);
	add(&use, CARD_USE_SAMPLES, 0);
	assert_int_equal(peak(&use), 0);
	/* A burst of a tenth of the window is no peak, a longer one is: until nearly all of it is past. */
	add(&use, 6, 90);
	assert_int_equal(peak(&use), 0);
	assert_int_equal(now(&use), 45);
	add(&use, 1, 90);
	assert_int_equal(peak(&use), 90);
	add(&use, 53, 0);
	assert_int_equal(peak(&use), 90);
	assert_int_equal(now(&use), 0);
	add(&use, 1, 0);
	assert_int_equal(peak(&use), 0);
}

/* Work with pauses for most of the window is busy: a pause attracts no new pod. */
static void test_lulls(void **state)
{
	struct card_use use = { 0 };
	for (int i = 0; i < 300; i++)
		card_use_add(&use, i % 40 < 5 ? 80 : 0);
	assert_int_equal(peak(&use), 80);
	for (int i = 0; i < 300; i++)
		card_use_add(&use, i % 60 < 6 ? 80 : 3);
	assert_int_equal(peak(&use), 3);
}

static bool is_news(unsigned peak_pct, unsigned now_pct, unsigned held_pct, uint64_t mib,
		    bool has_opportunistic)
{
	const struct kube_use published = { "a", 40, 40, 80, 10000 };
	const struct kube_use is = { "a", peak_pct, now_pct, held_pct, mib };
	return card_use_must_publish(
		&(struct card_use_change){ .published = &published,
					   .is = &is,
					   .card_mib = 80000,
					   .has_opportunistic = has_opportunistic });
}

static void test_news(void **state)
{
	assert_false(is_news(40, 40, 80, 10000, true));
	assert_false(is_news(44, 44, 80, 14000, true));
	assert_false(is_news(36, 36, 80, 6000, true));
	assert_true(is_news(45, 40, 80, 10000, false));
	assert_true(is_news(35, 40, 80, 10000, false));
	assert_true(is_news(40, 40, 79, 10000, false));
	assert_true(is_news(40, 40, 80, 14001, false));
	/* Present use matters to the pods that use the idle time. */
	assert_false(is_news(40, 90, 80, 10000, false));
	assert_true(is_news(40, 45, 80, 10000, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_peak_and_now),
					    cmocka_unit_test(test_lulls),
					    cmocka_unit_test(test_news) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
