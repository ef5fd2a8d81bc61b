/* Bells: who is believed to ring, and that no ring is lost between a look and the sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/arbitrate/bell.h"

#define MS NSEC_PER_MSEC

static _Atomic uint32_t word, own;

static void test_believed_while_it_rings(void **state)
{
	uint64_t now = NSEC_PER_SEC;
	struct bell b;

	word = 0;
	bell_init(&b, &word);
	assert_false(bell_hear(&b, now));
	assert_false(bell_rings(&b, now)); /* never did */
	word++;
	assert_true(bell_hear(&b, now));
	assert_false(bell_hear(&b, now));
	assert_true(bell_rings(&b, now));

	/* Late is not never. */
	bell_judge(&b, now, true, false);
	word++;
	assert_true(bell_hear(&b, now + BELL_LATE_NS / 2));
	bell_judge(&b, now + BELL_LATE_NS / 2, false, true);
	bell_judge(&b, now + 2 * BELL_LATE_NS, false, false);
	assert_true(bell_rings(&b, now + 2 * BELL_LATE_NS));
}

static void test_not_believed_where_it_does_not(void **state)
{
	uint64_t now = NSEC_PER_SEC, distrust = 0;
	struct bell b;

	word = 1;
	bell_init(&b, &word);
	for (int miss = 0; miss < 20; miss++) {
		uint64_t from;

		assert_true(bell_rings(&b, now));
		bell_judge(&b, now, true, false);
		assert_true(bell_rings(&b, now));
		now += BELL_LATE_NS;
		bell_judge(&b, now, true, false);
		from = now;
		while (!bell_rings(&b, now))
			now += MS;
		assert_true(now - from >= distrust); /* longer each time ... */
		distrust = now - from;
	}
	assert_int_equal(distrust, BELL_DISTRUST_NS << BELL_DOUBLINGS); /* ... up to that */
	now += BELL_FORGIVEN_NS + MS;
	bell_judge(&b, now, true, false);
	bell_judge(&b, now + BELL_LATE_NS, true, false);
	assert_false(bell_rings(&b, now + BELL_LATE_NS));
	assert_true(bell_rings(&b, now + BELL_LATE_NS + BELL_DISTRUST_NS));
}

static void test_flood_is_not_heard(void **state)
{
	uint64_t now = NSEC_PER_SEC, heard = 0;
	struct bell b;

	word = 0;
	bell_init(&b, &word);
	for (uint64_t end = now + NSEC_PER_SEC; now < end; now += 20 * NSEC_PER_USEC) {
		word++;
		heard += (!b.has_rung || bell_rings(&b, now)) && bell_hear(&b, now);
	}
	assert_in_range(heard, 450, 600);
	/* And in peace it is heard again. */
	assert_true(bell_rings(&b, now + 2 * BELL_BURST * BELL_EVERY_NS));
}

static void *ring_later(void *data)
{
	usleep(20000);
	atomic_fetch_add((_Atomic uint32_t *)data, 1);
	syscall(SYS_futex, data, FUTEX_WAKE, 1, NULL, NULL, 0);
	return NULL;
}

static void test_sleep_ends_by_ring_deadline_and_wake(void **state)
{
	struct bell_list list = { .count = 0 };
	struct bell b;
	pthread_t thread;
	uint64_t begun;

	if (!bell_is_offered())
		skip();
	word = 7;
	bell_init(&b, &word);
	for (int i = 0; i < BELL_MOST; i++)
		assert_true(bell_list_add(&list, &b));
	assert_false(bell_list_add(&list, &b));

	begun = clock_now_ns();
	assert_true(bell_sleep(&list, &own, own, begun + 5 * MS));
	assert_true(clock_now_ns() - begun >= 5 * MS);

	pthread_create(&thread, NULL, ring_later, &word);
	begun = clock_now_ns();
	assert_false(bell_sleep(&list, &own, own, begun + 10 * NSEC_PER_SEC));
	assert_in_range(clock_now_ns() - begun, 10 * MS, 5 * NSEC_PER_SEC);
	pthread_join(thread, NULL);

	/* Rung between the look and the sleep: there is no sleep. */
	begun = clock_now_ns();
	assert_false(bell_sleep(&list, &own, own, begun + 10 * NSEC_PER_SEC));
	assert_true(clock_now_ns() - begun < 5 * NSEC_PER_SEC);

	assert_true(bell_hear(&b, begun));
	list.count = 0;
	bell_list_add(&list, &b);
	uint32_t before = own;
	bell_wake(&own);
	assert_false(bell_sleep(&list, &own, before, clock_now_ns() + 10 * NSEC_PER_SEC));
	assert_true(clock_now_ns() - begun < 5 * NSEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_believed_while_it_rings),
		cmocka_unit_test(test_not_believed_where_it_does_not),
		cmocka_unit_test(test_flood_is_not_heard),
		cmocka_unit_test(test_sleep_ends_by_ring_deadline_and_wake),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
