#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "scheduler/bind/bind_lock.h"

#define NOW_S 1790000000 /* 2026-09-21T14:13:20Z */

static struct lock_observation sight;

static enum lock_state judge(const char *text, uint64_t now_s, struct node_lock *ret)
{
	const struct lock_query q = { .text = text,
				      .pod_namespace = "ns",
				      .pod = "mine",
				      .now_s = NOW_S + (int64_t)now_s,
				      .expiry_s = 300,
				      .now_ns = (now_s + 1000) * NSEC_PER_SEC };
	return lock_check(&sight, &q, ret);
}

static int clear(void **state)
{
	sight = (struct lock_observation){ 0 };
	return 0;
}

static void test_free_and_own(void **state)
{
	struct node_lock lock;
	assert_int_equal(judge(NULL, 0, &lock), LOCK_FREE);
	assert_string_equal(lock.pod, "");
	assert_int_equal(judge("", 0, &lock), LOCK_FREE);
	assert_int_equal(judge("2026-09-21T14:13:20Z,ns,mine", 1, &lock), LOCK_OWN);
	assert_string_equal(lock.pod, "mine");
	/* Of its own an old one is own as well. */
	assert_int_equal(judge("2026-01-01T00:00:00Z,ns,mine", 2, &lock), LOCK_OWN);
	/* The same name in another namespace is another pod. */
	assert_int_equal(judge("2026-09-21T14:13:20Z,other,mine", 3, &lock), LOCK_HELD);
}

static void test_expiry_by_its_time(void **state)
{
	static const char text[] = "2026-09-21T14:13:20Z,ns,other";
	struct node_lock lock;
	assert_int_equal(judge(text, 0, &lock), LOCK_HELD);
	assert_string_equal(lock.pod, "other");
	assert_int_equal(judge(text, 300, &lock), LOCK_HELD);
	assert_int_equal(judge(text, 301, &lock), LOCK_EXPIRED);
	clear(NULL);
	assert_int_equal(judge("2026-09-21T14:08:19Z", 0, &lock), LOCK_EXPIRED);
}

/* A time of the future, and a text that nobody can read, end by our own clock. */
static void test_expiry_by_our_clock(void **state)
{
	static const char *const texts[] = { "2030-01-01T00:00:00Z,ns,other", "garbage", "a,b",
					     "2026-09-21T14:13:20Z,ns,other,more" };
	struct node_lock lock;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		clear(NULL);
		assert_int_equal(judge(NULL, 0, &lock), LOCK_FREE);
		assert_int_equal(judge(texts[i], 5, &lock), LOCK_HELD);
		assert_int_equal(judge(texts[i], 305, &lock), LOCK_HELD);
		assert_int_equal(judge(texts[i], 306, &lock), LOCK_EXPIRED);
	}
}

/* Another text begins its time anew: a lock that was renewed. */
static void test_changed_lock(void **state)
{
	struct node_lock lock;
	assert_int_equal(judge("garbage", 0, &lock), LOCK_HELD);
	assert_int_equal(judge("other garbage", 299, &lock), LOCK_HELD);
	assert_int_equal(judge("other garbage", 599, &lock), LOCK_HELD);
	assert_int_equal(judge("other garbage", 600, &lock), LOCK_EXPIRED);
}

static void test_long_text(void **state)
{
	char text[NODE_LOCK_MAX * 2];
	struct node_lock lock;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(judge(text, 0, &lock), LOCK_HELD);
	assert_int_equal(judge(text, 301, &lock), LOCK_EXPIRED);
}

static void test_holder(void **state)
{
	static const struct {
		enum pod_phase phase;
		const char *node;
		enum bind_phase bind;
		bool is_left, is_left_later;
	} row[] = {
		{ POD_PENDING, "", BIND_ALLOCATING, false, false },
		{ POD_PENDING, "", BIND_NONE, false, false },
		{ POD_PENDING, "", BIND_FAILED, false, true },
		{ POD_PENDING, "n1", BIND_ALLOCATING, false, false },
		{ POD_PENDING, "n1", BIND_SUCCESS, false, true },
		{ POD_RUNNING, "n1", BIND_ALLOCATING, false, true },
		{ POD_PENDING, "n2", BIND_ALLOCATING, true, true },
		{ POD_ENDED, "n1", BIND_ALLOCATING, true, true },
	};
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct kube_pod pod = { .phase = row[i].phase,
					      .node = row[i].node,
					      .bind_phase = row[i].bind };
		assert_int_equal(lock_is_abandoned(&pod, "n1", LOCK_GRACE_NS - 1), row[i].is_left);
		assert_int_equal(lock_is_abandoned(&pod, "n1", LOCK_GRACE_NS), row[i].is_left_later);
	}
	assert_true(lock_is_abandoned(NULL, "n1", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_free_and_own, clear),
		cmocka_unit_test_setup(test_expiry_by_its_time, clear),
		cmocka_unit_test_setup(test_expiry_by_our_clock, clear),
		cmocka_unit_test_setup(test_changed_lock, clear),
		cmocka_unit_test_setup(test_long_text, clear),
		cmocka_unit_test(test_holder),
	};
	return cmocka_run_group_tests_name("scheduler/bind_lock", tests, NULL, NULL);
}
