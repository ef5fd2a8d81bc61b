/* The biased lock: which thread owns it, and that no update is lost, whichever thread takes it from another. */
#include "../test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "library/sys/biased.h"

static struct biased_lock lock;
static _Atomic uint32_t word;
static _Atomic uint64_t wide; /* counts the same */

static int start(void **state)
{
	biased_reset(&lock);
	word = 0;
	wide = 0;
	return 0;
}

static int end(void **state)
{
	assert_int_equal(wide, word);
	return 0;
}

static enum biased_hold add_one(void)
{
	enum biased_hold hold = biased_enter(&lock);

	biased_add(hold, &word, 1);
	biased_add_wide(hold, &wide, 1);
	biased_leave(&lock, hold);
	return hold;
}

static void *add_one_thread(void *unused)
{
	return (void *)(uintptr_t)add_one();
}

/* Returns how the lock was held; -1 if the visit changed errno. */
static void *visit_thread(void *unused)
{
	errno = EDOM;
	enum biased_hold hold = biased_visit(&lock);

	biased_add(hold, &word, 1);
	biased_add_wide(hold, &wide, 1);
	biased_leave(&lock, hold);
	return (void *)(errno == EDOM ? (intptr_t)hold : -1);
}

static enum biased_hold in_a_thread(void *(*function)(void *))
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, function, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	return (enum biased_hold)(uintptr_t)result;
}

static void test_one_thread_owns_it(void **state)
{
	assert_int_equal(add_one(), BIASED_LOCKED);
	for (int i = 0; i < 100; i++)
		assert_int_equal(add_one(), BIASED_OWN);
	assert_int_equal(word, 101);
}

static void test_a_visit_leaves_the_owner(void **state)
{
	add_one();
	for (int i = 0; i < 100; i++) {
		assert_int_equal(in_a_thread(visit_thread), BIASED_LOCKED);
		assert_int_equal(add_one(), BIASED_OWN);
	}
	/* Of the owner itself, too. */
	visit_thread(NULL);
	assert_int_equal(add_one(), BIASED_OWN);
	assert_int_equal(word, 203);
}

static void test_threads_that_take_turns_share_it(void **state)
{
	int locked = 0;

	for (int i = 0; i < 20; i++) {
		enum biased_hold hold = i % 2 ? in_a_thread(add_one_thread) : add_one();
		locked += hold == BIASED_LOCKED;
	}
	assert_in_range(locked, 2, 10);
	assert_int_equal(add_one(), BIASED_SHARED);
	assert_int_equal(in_a_thread(visit_thread), BIASED_SHARED);
	assert_int_equal(word, 22);
}

#define THREADS 4
#define TURNS 200000
#define VISITS 200

static _Atomic bool is_over;

static void *add_many(void *unused)
{
	for (int i = 0; i < TURNS; i++)
		add_one();
	return NULL;
}

static void *visit_many(void *ret_visits)
{
	uint32_t visits = 0;

	for (; visits < VISITS || !is_over; visits++)
		visit_thread(NULL);
	*(uint32_t *)ret_visits = visits;
	return NULL;
}

/* The owner adds by plain loads and stores, while another thread enters again and again. */
static void test_nothing_is_lost_to_a_visitor(void **state)
{
	pthread_t visitor;
	uint32_t visits = 0;

	is_over = false;
	add_one();
	assert_int_equal(pthread_create(&visitor, NULL, visit_many, &visits), 0);
	add_many(NULL);
	is_over = true;
	pthread_join(visitor, NULL);
	assert_int_equal(word, 1 + TURNS + visits);
	assert_false(lock.is_shared);
}

static void test_nothing_is_lost_among_threads(void **state)
{
	for (int round = 0; round < 20; round++) {
		pthread_t threads[THREADS];
		start(state);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, add_many, NULL), 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(word, THREADS * TURNS);
	}
}

/* ---- where membarrier is forbidden ---- */

static bool forbid_membarrier(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool is_shared_at_once(void)
{
	biased_reset(&lock);
	if (!forbid_membarrier())
		return false;
	errno = EDOM;
	return add_one() == BIASED_SHARED && add_one() == BIASED_SHARED && errno == EDOM;
}

/* Forbidden once there is an owner: it is taken from it all the same. */
static bool is_taken_after_all(void)
{
	biased_reset(&lock);
	word = 0;
	return add_one() == BIASED_LOCKED && add_one() == BIASED_OWN && forbid_membarrier() &&
	       in_a_thread(visit_thread) == BIASED_LOCKED && add_one() == BIASED_OWN && word == 4;
}

static void in_a_child(bool (*is_right)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(!is_right());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_without_membarrier(void **state)
{
	in_a_child(is_shared_at_once);
	in_a_child(is_taken_after_all);
}

static void test_move(void **state)
{
	static const enum biased_hold holds[] = { BIASED_OWN, BIASED_LOCKED, BIASED_SHARED };

	for (size_t i = 0; i < 3; i++) {
		word = 5;
		assert_false(biased_move(holds[i], &word, 4, 6));
		assert_int_equal(word, 5);
		assert_true(biased_move(holds[i], &word, 5, 6));
		assert_int_equal(word, 6);
		assert_int_equal(biased_add(holds[i], &word, 2), 6);
		wide = UINT64_C(1) << 32;
		assert_int_equal(biased_add_wide(holds[i], &wide, 2), UINT64_C(1) << 32);
		assert_int_equal(wide, (UINT64_C(1) << 32) + 2);
		wide = 8;
		assert_int_equal(word, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_thread_owns_it, start, end),
		cmocka_unit_test_setup_teardown(test_a_visit_leaves_the_owner, start, end),
		cmocka_unit_test_setup_teardown(test_threads_that_take_turns_share_it, start, end),
		cmocka_unit_test_setup_teardown(test_nothing_is_lost_to_a_visitor, start, end),
		cmocka_unit_test_setup_teardown(test_nothing_is_lost_among_threads, start, end),
		cmocka_unit_test_setup_teardown(test_without_membarrier, start, end),
		cmocka_unit_test_setup_teardown(test_move, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
