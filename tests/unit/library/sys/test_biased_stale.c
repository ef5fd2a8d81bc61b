/*
 * A thread that lost the biased lock without noticing: it is stopped between its two checks, while another thread becomes the
 * owner and is inside; then it continues.
 */
static void pause_here(void);
#define BIASED_PAUSE() pause_here()

#include "../test.h"

#include <pthread.h>
#include <semaphore.h>

#include "library/sys/biased.h"

static struct biased_lock lock;
static __thread bool is_to_stop;
static sem_t has_stopped, may_go_on, is_inside, may_leave, has_entered;
static _Atomic bool third_is_inside;

static void pause_here(void)
{
	if (!is_to_stop)
		return;
	is_to_stop = false;
	sem_post(&has_stopped);
	sem_wait(&may_go_on);
}

/* The owner, which is stopped. */
static void *first(void *unused)
{
	biased_leave(&lock, biased_enter(&lock));
	is_to_stop = true;
	enum biased_hold hold = biased_enter(&lock);
	assert_int_equal(hold, BIASED_LOCKED);
	biased_leave(&lock, hold);
	return NULL;
}

/* Takes the lock from it, and is inside as the owner when the stale owner continues. */
static void *second(void *unused)
{
	biased_leave(&lock, biased_enter(&lock));
	enum biased_hold hold = biased_enter(&lock);
	assert_int_equal(hold, BIASED_OWN);
	sem_post(&is_inside);
	sem_wait(&may_leave);
	assert_false(third_is_inside);
	biased_leave(&lock, hold);
	return NULL;
}

static void *third(void *unused)
{
	enum biased_hold hold = biased_enter(&lock);

	third_is_inside = true;
	biased_leave(&lock, hold);
	sem_post(&has_entered);
	return NULL;
}

static void test_the_stale_owner_lets_no_thread_in(void **state)
{
	sem_t *all[] = { &has_stopped, &may_go_on, &is_inside, &may_leave, &has_entered };
	pthread_t threads[3];

	for (size_t i = 0; i < 5; i++)
		sem_init(all[i], 0, 0);
	assert_int_equal(pthread_create(&threads[0], NULL, first, NULL), 0);
	sem_wait(&has_stopped);
	assert_int_equal(pthread_create(&threads[1], NULL, second, NULL), 0);
	sem_wait(&is_inside);
	/*
	 * The stale owner sets its busy flag, sees that it is no longer the owner, clears the flag, and then waits for the
	 * owner.
	 */
	sem_post(&may_go_on);
	sys_sleep_ns(20 * NS_PER_MS);
	assert_int_equal(pthread_create(&threads[2], NULL, third, NULL), 0);
	sys_sleep_ns(50 * NS_PER_MS);
	assert_false(third_is_inside);
	sem_post(&may_leave);
	sem_wait(&has_entered);
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_false(lock.is_shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		test_the_stale_owner_lets_no_thread_in) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
