/*
 * The ledger: threads and processes reserve and release at random against one quota. The quota is never exceeded, no request is
 * refused that fits, nothing is left behind, and a killed process's part is returned completely.
 */
#include "../test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "../fake_process.h"
#include "library/memory/ledger.h"

#define QUOTA 1000000ULL

static struct region_slot_device *slot_device(uint32_t slot)
{
	return &fake_report->slot[slot].device[0];
}

static void start(uint32_t slots)
{
	fake_process_start(slots);
	fake_control->device[0].quota_bytes = QUOTA;
}

static void test_reserves_up_to_the_quota(void **state)
{
	start(4);
	assert_int_equal(ledger_reserve(0, QUOTA - 1, true), 0);
	assert_int_equal(ledger_reserve(0, 2, true), -ENOMEM);
	assert_int_equal(ledger_reserve(0, 2, false), -ENOMEM);
	assert_int_equal(ledger_reserve(0, 1, true), 0);
	assert_int_equal(ledger_reserve(0, 0, true), 0);
	assert_int_equal(ledger_used(0), QUOTA);
	assert_int_equal(slot_device(0)->denied, 1);
	assert_int_equal(slot_device(0)->peak_bytes, QUOTA);
	assert_int_equal(slot_device(0)->tentative_bytes, 0);
	ledger_release(0, QUOTA);
	assert_int_equal(ledger_used(0), 0);
	assert_int_equal(slot_device(0)->peak_bytes, QUOTA);
}

static void test_no_sum_overflows(void **state)
{
	start(4);
	assert_int_equal(ledger_reserve(0, UINT64_MAX, true), -ENOMEM);
	assert_int_equal(ledger_reserve(0, 1, true), 0);
	assert_int_equal(ledger_reserve(0, UINT64_MAX, true), -ENOMEM);
	assert_int_equal(ledger_reserve(0, UINT64_MAX - 1, true), -ENOMEM);
	ledger_release(0, 2);
	assert_int_equal(ledger_used(0), 0);
}

static void test_without_a_quota_all_fits(void **state)
{
	start(4);
	fake_control->device[0].quota_bytes = UINT64_MAX;
	assert_int_equal(ledger_reserve(0, 1ULL << 60, true), 0);
	assert_int_equal(ledger_reserve(0, 1ULL << 60, true), 0);
}

static void test_a_lowered_quota_refuses_and_takes_nothing(void **state)
{
	start(4);
	assert_int_equal(ledger_reserve(0, QUOTA / 2, true), 0);
	fake_control->device[0].quota_bytes = QUOTA / 4;
	assert_int_equal(ledger_reserve(0, 1, true), -ENOMEM);
	assert_int_equal(ledger_used(0), QUOTA / 2);
	ledger_release(0, QUOTA / 2);
	assert_int_equal(ledger_reserve(0, QUOTA / 4, true), 0);
}

static void test_counts_other_slots_and_what_none_holds(void **state)
{
	start(4);
	slot_device(3)->used_bytes = QUOTA / 2;
	fake_control->device[0].unslotted_bytes = QUOTA / 4;
	assert_int_equal(ledger_used(0), QUOTA / 2 + QUOTA / 4);
	assert_int_equal(ledger_reserve(0, QUOTA / 4 + 1, true), -ENOMEM);
	assert_int_equal(ledger_reserve(0, QUOTA / 4, true), 0);
	/* Beyond the limit there are no slots. */
	start(2);
	slot_device(3)->used_bytes = QUOTA;
	assert_int_equal(ledger_reserve(0, QUOTA, true), 0);
}

static void test_contexts_are_marked(void **state)
{
	start(1);
	assert_int_equal(ledger_reserve_context(0, 600000), 0);
	assert_int_equal(ledger_reserve_context(0, 600000), -ENOMEM);
	assert_int_equal(slot_device(0)->context_used_bytes, 600000);
	assert_int_equal(slot_device(0)->used_bytes, 600000);
	ledger_release_context(0, 600000);
	assert_int_equal(slot_device(0)->context_used_bytes, 0);
	assert_int_equal(slot_device(0)->used_bytes, 0);
}

/* The daemon's measurement counts in each slot, as long as a daemon measures. */
static void test_counts_what_no_call_named(void **state)
{
	start(4);
	slot_device(0)->unnamed_bytes = QUOTA / 4;
	slot_device(2)->unnamed_bytes = QUOTA / 4;
	assert_int_equal(ledger_used(0), QUOTA / 2);
	assert_int_equal(ledger_reserve(0, QUOTA / 2 + 1, true), -ENOMEM);
	assert_int_equal(ledger_reserve_context(0, QUOTA / 2), 0);
	assert_int_equal(ledger_reserve(0, 1, true), -ENOMEM);
	atomic_store(&process_state.daemon_lost, true);
	assert_int_equal(ledger_used(0), QUOTA / 2);
	atomic_store(&process_state.daemon_lost, false);
	/* Code goes with the last context, at once. */
	ledger_release_context(0, QUOTA / 2);
	assert_int_equal(ledger_used(0), QUOTA / 4);
	assert_int_equal(slot_device(0)->unnamed_bytes, 0);
}

/* The ledger's peak since the daemon's last census began. */
static void test_peak_between_two_reads(void **state)
{
	start(1);
	fake_control->census = 7;
	assert_int_equal(ledger_reserve(0, 1000, true), 0);
	assert_int_equal(slot_device(0)->census, 7);
	ledger_release(0, 900);
	assert_int_equal(ledger_reserve(0, 100, true), 0);
	assert_int_equal(slot_device(0)->census_peak_bytes, 1000);
	fake_control->census = 8;
	ledger_adjust(0, 50);
	assert_int_equal(slot_device(0)->census, 8);
	assert_int_equal(slot_device(0)->census_peak_bytes, 250);
}

static void test_adjust_asks_no_quota(void **state)
{
	start(1);
	ledger_adjust(0, (int64_t)QUOTA * 2);
	assert_int_equal(ledger_used(0), QUOTA * 2);
	assert_int_equal(slot_device(0)->peak_bytes, QUOTA * 2);
	ledger_adjust(0, -(int64_t)QUOTA * 3);
	assert_int_equal(ledger_used(0), 0);
}

static void count_publish(void *context)
{
	++*(unsigned *)context;
	atomic_store(&process_state.slot, &fake_report->slot[1]);
}

static void test_moves_to_a_new_slot(void **state)
{
	unsigned published = 0;

	start(2);
	assert_int_equal(ledger_reserve(0, 1000, true), 0);
	assert_int_equal(ledger_reserve_context(0, 500), 0);
	ledger_move(&fake_report->slot[0], &fake_report->slot[1], count_publish, &published);
	assert_int_equal(published, 1);
	assert_int_equal(slot_device(1)->used_bytes, 1500);
	assert_int_equal(slot_device(1)->context_used_bytes, 500);
	assert_int_equal(slot_device(1)->peak_bytes, 1500);
	assert_int_equal(fake_report->slot[1].migrated, 1);
	fake_process_clear_slot(0);
	ledger_release(0, 1500);
	assert_int_equal(fake_process_used(), 0);
}

static void test_waits_while_a_new_daemon_gathers(void **state)
{
	start(1);
	fake_control->adopting = 1;
	pid_t daemon = fork();
	if (daemon == 0) {
		usleep(200000);
		fake_control->adopting = 0;
		_exit(0);
	}
	uint64_t begin = sys_now_ns();
	assert_int_equal(ledger_reserve(0, 1, true), 0);
	uint64_t took = sys_now_ns() - begin;
	waitpid(daemon, NULL, 0);
	assert_in_range(took, 150 * NS_PER_MS, 1000 * NS_PER_MS);
	/* But not for ever. */
	fake_control->adopting = 1;
	begin = sys_now_ns();
	assert_int_equal(ledger_reserve(0, 1, true), 0);
	assert_in_range(sys_now_ns() - begin, 500 * NS_PER_MS, 10000 * NS_PER_MS);
}

/* A process that is stopped while it asks does not block the others without end. */
static void test_waits_for_an_undecided_request_only_a_while(void **state)
{
	start(3);
	for (uint32_t own = 0; own <= 2; own += 2) {
		fake_process_take_slot(own);
		slot_device(1)->tentative_bytes = QUOTA;
		uint64_t begin = sys_now_ns();
		assert_int_equal(ledger_reserve(0, 1, true), -ENOMEM);
		assert_in_range(sys_now_ns() - begin, 100 * NS_PER_MS, 10000 * NS_PER_MS);
		assert_int_equal(slot_device(own)->tentative_bytes, 0);
		slot_device(1)->tentative_bytes = 0;
		assert_int_equal(ledger_reserve(0, 1, true), 0);
	}
}

/* ---- many at once ---- */

#define PROCESSES 6
#define THREADS 4

/* Beside the region, shared with the children. */
static struct {
	_Atomic bool stop;
	_Atomic uint64_t true_used; /* kept by the children after a grant and before a release */
	_Atomic uint64_t most, over, refused, granted;
} * board;

static void raise_most(uint64_t value)
{
	uint64_t most = atomic_load(&board->most);

	while (value > most && !atomic_compare_exchange_weak(&board->most, &most, value))
		;
}

static void *storm_thread(void *seed)
{
	uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15ULL + 1, held[16] = { 0 };

	while (!atomic_load(&board->stop)) {
		unsigned i = (unsigned)(test_random(&random) % 16);
		if (held[i]) {
			atomic_fetch_sub(&board->true_used, held[i]);
			ledger_release(0, held[i]);
			held[i] = 0;
			continue;
		}
		uint64_t bytes = 1 + test_random(&random) % (QUOTA / 8);
		if (ledger_reserve(0, bytes, true)) {
			atomic_fetch_add(&board->refused, 1);
			continue;
		}
		held[i] = bytes;
		uint64_t now = atomic_fetch_add(&board->true_used, bytes) + bytes;
		raise_most(now);
		atomic_fetch_add(&board->over, now > QUOTA);
		atomic_fetch_add(&board->granted, 1);
	}
	for (unsigned i = 0; i < 16; i++) {
		atomic_fetch_sub(&board->true_used, held[i]);
		ledger_release(0, held[i]);
	}
	return NULL;
}

static void storm_process(uint32_t slot, unsigned threads)
{
	pthread_t thread[THREADS];

	fake_process_take_slot(slot);
	for (unsigned i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, storm_thread,
			       (void *)(uintptr_t)(slot * THREADS + i + 1));
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}

static void make_board(void)
{
	if (!board)
		board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(board, MAP_FAILED);
	memset(board, 0, sizeof(*board));
}

static void test_a_storm_stays_under_and_ends_at_zero(void **state)
{
	pid_t children[PROCESSES];

	start(PROCESSES);
	make_board();
	for (uint32_t i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0)
			storm_process(i, THREADS);
	}
	sleep(2);
	atomic_store(&board->stop, true);
	for (unsigned i = 0; i < PROCESSES; i++)
		waitpid(children[i], NULL, 0);
	print_message("%llu granted, %llu refused, at most %llu of %llu\n",
		      (unsigned long long)board->granted, (unsigned long long)board->refused,
		      (unsigned long long)board->most, QUOTA);
	assert_int_equal(board->over, 0);
	assert_true(board->granted > 1000);
	assert_true(board->refused > 0);
	assert_true(board->most > QUOTA / 2);
	assert_int_equal(fake_process_used(), 0);
	for (uint32_t i = 0; i < PROCESSES; i++)
		assert_int_equal(slot_device(i)->tentative_bytes, 0);
}

/*
 * Two that fit together must both get theirs, however often they ask at the same moment; of two that
 * fit alone but not together, one gets it.
 */
static void contender(uint32_t slot, uint64_t bytes, unsigned rounds, _Atomic uint32_t *round,
		      _Atomic uint32_t *ready, _Atomic uint32_t *got)
{
	fake_process_take_slot(slot);
	for (unsigned i = 1; i <= rounds; i++) {
		while (atomic_load(round) != i)
			sched_yield();
		bool is_granted = ledger_reserve(0, bytes, true) == 0;
		atomic_fetch_add(got, is_granted);
		atomic_fetch_add(ready, 1);
		while (atomic_load(ready) < 4 * i - 2)
			sched_yield();
		if (is_granted)
			ledger_release(0, bytes);
		atomic_fetch_add(ready, 1);
	}
	_exit(0);
}

static void contend(uint64_t bytes, unsigned rounds, uint32_t *ret_fewest, uint32_t *ret_most)
{
	_Atomic uint32_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_Atomic uint32_t *round = &words[0], *ready = &words[1], *got = &words[2];
	pid_t children[2];

	start(2);
	for (uint32_t i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0)
			contender(i, bytes, rounds, round, ready, got);
	}
	*ret_fewest = 2;
	*ret_most = 0;
	for (unsigned i = 1; i <= rounds; i++) {
		uint32_t before = atomic_load(got);
		atomic_store(round, i);
		while (atomic_load(ready) != 4 * i)
			sched_yield();
		uint32_t granted = atomic_load(got) - before;
		if (granted < *ret_fewest)
			*ret_fewest = granted;
		if (granted > *ret_most)
			*ret_most = granted;
	}
	for (unsigned i = 0; i < 2; i++)
		waitpid(children[i], NULL, 0);
	assert_int_equal(fake_process_used(), 0);
	munmap(words, 4096);
}

static void test_nothing_that_fits_is_refused(void **state)
{
	uint32_t fewest, most;

	contend(QUOTA / 2, 3000, &fewest, &most);
	assert_int_equal(fewest, 2);
	assert_int_equal(most, 2);
	/* Exactly one: it must not happen that both are refused because each saw the other's request. */
	contend(QUOTA / 2 + 1, 3000, &fewest, &most);
	assert_int_equal(fewest, 1);
	assert_int_equal(most, 1);
}

/*
 * Every interleaving with another process's grant. Our reservation runs one instruction at a time. After each number of
 * instructions the other process, which had checked before our request, takes its bytes. Both do not fit, so ours must be
 * refused in each case.
 */
#define STEPS 500

static int reserve_against(uint32_t own, uint32_t other, unsigned steps)
{
	struct region_slot_device *d;
	int status = 0;

	start(2);
	d = slot_device(other);
	d->tentative_bytes = QUOTA / 2 + 1;
	pid_t child = fork();
	if (child == 0) {
		fake_process_take_slot(own);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(TEST_SKIPPED);
		raise(SIGSTOP);
		_exit(ledger_reserve(0, QUOTA / 2 + 1, true) ? 1 : 0);
	}
	waitpid(child, &status, 0);
	for (unsigned i = 0; i < steps && WIFSTOPPED(status); i++) {
		ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
		waitpid(child, &status, 0);
	}
	atomic_fetch_add(&d->used_bytes, QUOTA / 2 + 1);
	atomic_store(&d->tentative_bytes, 0);
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_DETACH, child, NULL, NULL);
		waitpid(child, &status, 0);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_no_interleaving_grants_both(void **state)
{
	if (reserve_against(0, 1, 0) == TEST_SKIPPED)
		skip();
	for (unsigned steps = 0; steps < STEPS; steps++) {
		assert_int_equal(reserve_against(0, 1, steps), 1);
		assert_int_equal(reserve_against(1, 0, steps), 1);
	}
}

/* ---- killed ---- */

static void test_memory_of_killed_processes_is_returned(void **state)
{
	uint64_t random = 77;
	pid_t children[PROCESSES];
	unsigned kills = 0;

	start(PROCESSES);
	make_board();
	for (uint32_t i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0)
			storm_process(i, 2);
	}
	while (kills < 300) {
		uint32_t victim = (uint32_t)(test_random(&random) % PROCESSES);
		usleep((useconds_t)(test_random(&random) % 3000));
		kill(children[victim], SIGKILL);
		waitpid(children[victim], NULL, 0);
		fake_process_clear_slot(victim);
		kills++;
		children[victim] = fork();
		if (children[victim] == 0)
			storm_process(victim, 2);
		assert_true(ledger_used(0) < QUOTA * 2); /* a sum over moving slots */
	}
	/* When all are stopped, the slots are exact: each at or below the quota, and together too. */
	for (unsigned i = 0; i < PROCESSES; i++) {
		kill(children[i], SIGSTOP);
		waitpid(children[i], NULL, WUNTRACED);
	}
	assert_true(fake_process_used() <= QUOTA);
	for (unsigned i = 0; i < PROCESSES; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
		fake_process_clear_slot(i);
	}
	fake_process_take_slot(0);
	assert_int_equal(fake_process_used(), 0);
	assert_int_equal(ledger_reserve(0, QUOTA, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserves_up_to_the_quota),
		cmocka_unit_test(test_no_sum_overflows),
		cmocka_unit_test(test_without_a_quota_all_fits),
		cmocka_unit_test(test_a_lowered_quota_refuses_and_takes_nothing),
		cmocka_unit_test(test_counts_other_slots_and_what_none_holds),
		cmocka_unit_test(test_contexts_are_marked),
		cmocka_unit_test(test_counts_what_no_call_named),
		cmocka_unit_test(test_peak_between_two_reads),
		cmocka_unit_test(test_adjust_asks_no_quota),
		cmocka_unit_test(test_moves_to_a_new_slot),
		cmocka_unit_test(test_waits_while_a_new_daemon_gathers),
		cmocka_unit_test(test_waits_for_an_undecided_request_only_a_while),
		cmocka_unit_test(test_a_storm_stays_under_and_ends_at_zero),
		cmocka_unit_test(test_nothing_that_fits_is_refused),
		cmocka_unit_test(test_no_interleaving_grants_both),
		cmocka_unit_test(test_memory_of_killed_processes_is_returned),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
