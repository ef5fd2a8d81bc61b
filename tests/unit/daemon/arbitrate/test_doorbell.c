/* Doorbells: which tenants are trusted to ring, and that no ring is lost between a poll and the sleep. */
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
#include "daemon/arbitrate/doorbell.h"

#define MS NSEC_PER_MSEC

static _Atomic uint32_t word, own;

static void test_believed_while_it_rings(void **state)
{
	uint64_t now = NSEC_PER_SEC;
	struct doorbell b;

	word = 0;
	doorbell_init(&b, &word);
	assert_false(doorbell_poll(&b, now));
	assert_false(doorbell_is_trusted(&b, now)); /* never did */
	word++;
	assert_true(doorbell_poll(&b, now));
	assert_false(doorbell_poll(&b, now));
	assert_true(doorbell_is_trusted(&b, now));

	/* Late is not never. */
	doorbell_check(&b, now, true, false);
	word++;
	assert_true(doorbell_poll(&b, now + DOORBELL_LATE_NS / 2));
	doorbell_check(&b, now + DOORBELL_LATE_NS / 2, false, true);
	doorbell_check(&b, now + 2 * DOORBELL_LATE_NS, false, false);
	assert_true(doorbell_is_trusted(&b, now + 2 * DOORBELL_LATE_NS));
}

static void test_not_believed_where_it_does_not(void **state)
{
	uint64_t now = NSEC_PER_SEC, distrust = 0;
	struct doorbell b;

	word = 1;
	doorbell_init(&b, &word);
	for (int miss = 0; miss < 20; miss++) {
		uint64_t from;

		assert_true(doorbell_is_trusted(&b, now));
		doorbell_check(&b, now, true, false);
		assert_true(doorbell_is_trusted(&b, now));
		now += DOORBELL_LATE_NS;
		doorbell_check(&b, now, true, false);
		from = now;
		while (!doorbell_is_trusted(&b, now))
			now += MS;
		assert_true(now - from >= distrust); /* longer each time ... */
		distrust = now - from;
	}
	assert_int_equal(distrust, DOORBELL_DISTRUST_NS << DOORBELL_DOUBLINGS); /* ... up to that */
	now += DOORBELL_FORGIVEN_NS + MS;
	doorbell_check(&b, now, true, false);
	doorbell_check(&b, now + DOORBELL_LATE_NS, true, false);
	assert_false(doorbell_is_trusted(&b, now + DOORBELL_LATE_NS));
	assert_true(doorbell_is_trusted(&b, now + DOORBELL_LATE_NS + DOORBELL_DISTRUST_NS));
}

static void test_flood_is_not_trusted(void **state)
{
	uint64_t now = NSEC_PER_SEC, seen = 0;
	struct doorbell b;

	word = 0;
	doorbell_init(&b, &word);
	for (uint64_t end = now + NSEC_PER_SEC; now < end; now += 20 * NSEC_PER_USEC) {
		word++;
		seen += (!b.has_rung || doorbell_is_trusted(&b, now)) && doorbell_poll(&b, now);
	}
	assert_in_range(seen, 450, 600);
	/* After a quiet time it is trusted again. */
	assert_true(doorbell_is_trusted(&b, now + 2 * DOORBELL_BURST * DOORBELL_EVERY_NS));
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
	struct doorbell_list list = { .count = 0 };
	struct doorbell b;
	pthread_t thread;
	uint64_t begun;

	if (!doorbell_is_supported())
		skip();
	word = 7;
	doorbell_init(&b, &word);
	for (int i = 0; i < DOORBELL_LIST_MAX; i++)
		assert_true(doorbell_list_add(&list, &b));
	assert_false(doorbell_list_add(&list, &b));

	begun = clock_now_ns();
	assert_true(doorbell_wait(&list, &own, own, begun + 5 * MS));
	assert_true(clock_now_ns() - begun >= 5 * MS);

	pthread_create(&thread, NULL, ring_later, &word);
	begun = clock_now_ns();
	assert_false(doorbell_wait(&list, &own, own, begun + 10 * NSEC_PER_SEC));
	assert_in_range(clock_now_ns() - begun, 10 * MS, 5 * NSEC_PER_SEC);
	pthread_join(thread, NULL);

	/* A ring between the poll and the sleep: the arbiter does not sleep. */
	begun = clock_now_ns();
	assert_false(doorbell_wait(&list, &own, own, begun + 10 * NSEC_PER_SEC));
	assert_true(clock_now_ns() - begun < 5 * NSEC_PER_SEC);

	assert_true(doorbell_poll(&b, begun));
	list.count = 0;
	doorbell_list_add(&list, &b);
	uint32_t before = own;
	doorbell_wake(&own);
	assert_false(doorbell_wait(&list, &own, before, clock_now_ns() + 10 * NSEC_PER_SEC));
	assert_true(clock_now_ns() - begun < 5 * NSEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_believed_while_it_rings),
		cmocka_unit_test(test_not_believed_where_it_does_not),
		cmocka_unit_test(test_flood_is_not_trusted),
		cmocka_unit_test(test_sleep_ends_by_ring_deadline_and_wake),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
