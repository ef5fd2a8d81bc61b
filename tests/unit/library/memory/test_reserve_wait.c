/* Waiting for a grant, in the library: the request, and the events that end the wait. A thread plays the daemon. */
#include "../test.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../fake_process.h"
#include "library/memory/reserve_wait.h"
#include "library/memory/ledger.h"

#define QUOTA 1000000ULL

static struct region_want *want(void)
{
	return &fake_report->want[0][0];
}

static void start(uint64_t granted)
{
	fake_process_start(4);
	fake_control->memory_waits = 1;
	fake_control->device[0].quota_bytes = QUOTA;
	fake_control->device[0].memory_granted_bytes = granted;
}

static void grant(uint64_t bytes)
{
	struct region_control_device *c = &fake_control->device[0];

	atomic_store(&c->memory_granted_bytes, bytes);
	atomic_store(&want()->answered, atomic_load(&want()->ask));
	atomic_fetch_add(&c->memory_grant_change, 1);
	syscall(SYS_futex, &c->memory_grant_change, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Waits for a request, then grants this much after a while. */
static void *answer_later(void *data)
{
	while (!atomic_load(&want()->ask))
		sys_sleep_ns(NS_PER_MS);
	sys_sleep_ns(20 * NS_PER_MS);
	grant(*(uint64_t *)data);
	return NULL;
}

static pthread_t daemon_thread;

static void play_daemon(uint64_t *granted)
{
	assert_int_equal(pthread_create(&daemon_thread, NULL, answer_later, granted), 0);
}

static void test_does_not_wait_unless_the_tenant_does(void **state)
{
	struct reserve_wait wait = { 0 };

	start(0);
	fake_control->memory_waits = 0;
	assert_int_equal(ledger_reserve(0, QUOTA, true), 0);
	assert_false(reserve_wait(0, 1, &wait));
	assert_int_equal(want()->ask, 0);
	/* Host memory is never waited for, and no grant bounds it. */
	start(0);
	fake_control->device[REGION_HOST].quota_bytes = QUOTA;
	assert_int_equal(ledger_reserve(REGION_HOST, QUOTA, true), 0);
	assert_false(reserve_wait(REGION_HOST, 1, &wait));
}

static void *sample_later(void *data)
{
	sys_sleep_ns(20 * NS_PER_MS);
	atomic_store(&fake_report->slot[1].device[0].fresh_bytes, 0);
	return NULL;
}

/* Memory of other tenants was taken for that of another process of this tenant, until the daemon reads the usage. */
static void test_the_daemon_reads_usage_before_a_refusal(void **state)
{
	struct reserve_wait wait = { 0 };
	pthread_t thread;

	start(0);
	fake_control->memory_waits = 0;
	fake_report->slot[1].device[0].fresh_bytes = QUOTA;
	/* A request that no reading could make room for does not wait for one. */
	assert_false(reserve_wait(0, QUOTA + 1, &wait));
	assert_int_equal(ledger_reserve(0, 4096, false), -ENOMEM);
	assert_int_equal(pthread_create(&thread, NULL, sample_later, NULL), 0);
	assert_true(reserve_wait(0, 4096, &wait));
	pthread_join(thread, NULL);
	assert_int_equal(ledger_reserve(0, 4096, false), 0);
	/* Once a call. */
	fake_report->slot[1].device[0].fresh_bytes = QUOTA;
	assert_false(reserve_wait(0, 4096, &wait));
}

static void test_nothing_is_reserved_beyond_the_grant(void **state)
{
	start(QUOTA / 2);
	assert_int_equal(ledger_reserve(0, QUOTA / 2 + 1, false), -ENOMEM);
	assert_int_equal(ledger_reserve(0, QUOTA / 2, false), 0);
	assert_int_equal(ledger_reserve(0, 1, false), -ENOMEM);
	fake_control->device[0].memory_granted_bytes = 2 * QUOTA;
	assert_int_equal(ledger_reserve(0, QUOTA / 2 + 1, false), -ENOMEM);
	assert_int_equal(ledger_reserve(0, QUOTA / 2, false), 0);
	assert_int_equal(fake_report->slot[0].device[0].denied, 0);
}

static void test_waits_until_it_is_granted(void **state)
{
	struct reserve_wait wait = { 0 };
	uint64_t granted = QUOTA;

	start(0);
	uint32_t rings = fake_report->bell[0].ring_count;
	play_daemon(&granted);
	assert_int_equal(ledger_reserve(0, 4096, false), -ENOMEM);
	uint64_t begin = sys_now_ns();
	assert_true(reserve_wait(0, 4096, &wait));
	assert_true(sys_now_ns() - begin >= 15 * NS_PER_MS);
	assert_int_equal(ledger_reserve(0, 4096, false), 0);
	pthread_join(daemon_thread, NULL);
	assert_int_equal(want()->bytes, 0);
	assert_int_equal(fake_report->bell[0].ring_count, rings + 1);
	/* From then on nothing asks. */
	assert_int_equal(ledger_reserve(0, QUOTA - 4096, false), 0);
	assert_int_equal(want()->ask, 1);
}

static void test_what_the_quota_has_no_room_for_is_not_asked(void **state)
{
	struct reserve_wait wait = { 0 };

	start(QUOTA / 2);
	assert_false(reserve_wait(0, QUOTA + 1, &wait));
	assert_false(reserve_wait(0, UINT64_MAX, &wait));
	assert_int_equal(want()->ask, 0);
}

static void test_an_answer_without_a_grant_refuses(void **state)
{
	struct reserve_wait wait = { 0 };
	uint64_t granted = QUOTA / 2;

	start(QUOTA / 2);
	play_daemon(&granted);
	assert_false(reserve_wait(0, QUOTA / 2 + 1, &wait));
	pthread_join(daemon_thread, NULL);
	assert_int_equal(want()->bytes, 0);
	assert_int_equal(want()->ask, 1);
}

static void test_one_that_holds_is_not_left_without_an_answer(void **state)
{
	struct reserve_wait wait = { 0 };
	uint64_t begin = sys_now_ns();

	start(QUOTA / 2);
	assert_false(reserve_wait(0, QUOTA / 2 + 1, &wait));
	assert_true(sys_now_ns() - begin >= NS_PER_S);
	/* Withdrawn: the count goes up once more, and the doorbell rings. */
	assert_int_equal(want()->bytes, 0);
	assert_int_equal(want()->ask, 2);
}

static void *free_later(void *data)
{
	while (!atomic_load(&want()->ask))
		sys_sleep_ns(NS_PER_MS);
	ledger_release(0, QUOTA / 2);
	return NULL;
}

/* The wait holds no lock that a free needs, and another thread's free ends it. */
static void test_another_thread_frees_meanwhile(void **state)
{
	struct reserve_wait wait = { 0 };
	pthread_t thread;

	start(QUOTA / 2);
	assert_int_equal(ledger_reserve(0, QUOTA / 2, false), 0);
	assert_int_equal(pthread_create(&thread, NULL, free_later, NULL), 0);
	assert_true(reserve_wait(0, 1000, &wait));
	pthread_join(thread, NULL);
	assert_int_equal(ledger_reserve(0, 1000, false), 0);
	/* There was no answer: the request is withdrawn. */
	assert_int_equal(want()->ask, 2);
}

static void test_a_limit_of_time(void **state)
{
	struct reserve_wait wait = { 0 };
	uint64_t begin = sys_now_ns();

	start(0);
	fake_control->memory_wait_ns = 500 * NS_PER_MS;
	assert_false(reserve_wait(0, 1, &wait));
	assert_true(sys_now_ns() - begin >= 500 * NS_PER_MS);
	/* The limit is for the whole call, so a second wait of the call does not last as long again. */
	begin = sys_now_ns();
	assert_false(reserve_wait(0, 1, &wait));
	assert_true(sys_now_ns() - begin < 500 * NS_PER_MS);
}

/* The daemon was restarted: new files, without any request yet. */
static void *restart_later(void *data)
{
	struct region_control *old = fake_control;

	while (!atomic_load(&want()->ask))
		sys_sleep_ns(NS_PER_MS);
	fake_control = mmap(NULL, sizeof(*fake_control), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct region_report *report = mmap(NULL, sizeof(*fake_report), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memcpy(fake_control, old, sizeof(*fake_control));
	fake_report = report;
	atomic_store(&process_state.control, fake_control);
	atomic_store(&process_state.report, fake_report);
	atomic_store(&process_state.slot, &fake_report->slot[0]);
	return answer_later(data);
}

static void test_a_new_daemon_is_asked_anew(void **state)
{
	struct reserve_wait wait = { 0 };
	uint64_t granted = QUOTA;
	pthread_t thread;

	start(0);
	assert_int_equal(pthread_create(&thread, NULL, restart_later, &granted), 0);
	assert_true(reserve_wait(0, 4096, &wait));
	pthread_join(thread, NULL);
	assert_int_equal(want()->ask, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_does_not_wait_unless_the_tenant_does),
		cmocka_unit_test(test_the_daemon_reads_usage_before_a_refusal),
		cmocka_unit_test(test_nothing_is_reserved_beyond_the_grant),
		cmocka_unit_test(test_waits_until_it_is_granted),
		cmocka_unit_test(test_what_the_quota_has_no_room_for_is_not_asked),
		cmocka_unit_test(test_an_answer_without_a_grant_refuses),
		cmocka_unit_test(test_one_that_holds_is_not_left_without_an_answer),
		cmocka_unit_test(test_another_thread_frees_meanwhile),
		cmocka_unit_test(test_a_limit_of_time),
		cmocka_unit_test(test_a_new_daemon_is_asked_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
