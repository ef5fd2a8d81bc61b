/* The order of steps, from whatever states: with steps that fail and processes that die at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/memory/checkpoint/checkpoint_steps.h"

#define MOST 6
#define SCENES 200000

static unsigned count_in(const enum checkpoint_state *s, size_t n, enum checkpoint_state state)
{
	unsigned count = 0;
	for (size_t i = 0; i < n; i++)
		count += s[i] == state;
	return count;
}

/* The driver's steps; it refuses a step from any other state. */
static enum checkpoint_state after(enum checkpoint_state state, enum checkpoint_step step)
{
	static const enum checkpoint_state before[] = { [CHECKPOINT_LOCK] = CHECKPOINT_RUNNING,
							[CHECKPOINT_SAVE] = CHECKPOINT_LOCKED,
							[CHECKPOINT_RESTORE] = CHECKPOINT_SAVED,
							[CHECKPOINT_UNLOCK] = CHECKPOINT_LOCKED };
	static const enum checkpoint_state to[] = { [CHECKPOINT_LOCK] = CHECKPOINT_LOCKED,
						    [CHECKPOINT_SAVE] = CHECKPOINT_SAVED,
						    [CHECKPOINT_RESTORE] = CHECKPOINT_LOCKED,
						    [CHECKPOINT_UNLOCK] = CHECKPOINT_RUNNING };
	assert_int_equal(state, before[step]);
	return to[step];
}

static void check_rules(enum checkpoint_step step, const enum checkpoint_state *s, size_t n)
{
	/* No process's memory leaves while another process runs, and none runs while the memory of another is out. */
	if (step == CHECKPOINT_SAVE)
		assert_int_equal(count_in(s, n, CHECKPOINT_RUNNING), 0);
	if (step == CHECKPOINT_UNLOCK)
		assert_int_equal(count_in(s, n, CHECKPOINT_SAVED), 0);
}

/* Up to `most` steps; true: there is nothing left to do. */
static bool go(enum checkpoint_goal goal, enum checkpoint_state *s, size_t n, size_t most)
{
	for (size_t i = 0; i <= most; i++) {
		struct checkpoint_next next = checkpoint_next(goal, s, n);
		if (next.step == CHECKPOINT_NOTHING)
			return true;
		if (i == most)
			break;
		assert_in_range(next.index, 0, n - 1);
		check_rules(next.step, s, n);
		s[next.index] = after(s[next.index], next.step);
	}
	return false;
}

static void test_any_states_reach_the_goal(void **state)
{
	srand(1);
	for (unsigned i = 0; i < SCENES; i++) {
		enum checkpoint_goal goal = rand() % 2 ? CHECKPOINT_OUT : CHECKPOINT_IN;
		enum checkpoint_state s[MOST];
		size_t n = (size_t)rand() % (MOST + 1);
		for (size_t k = 0; k < n; k++)
			s[k] = (enum checkpoint_state)(rand() % 5 - 1);
		unsigned lost = count_in(s, n, CHECKPOINT_GONE) + count_in(s, n, CHECKPOINT_FAILED);
		/* Part of the way; then a process dies, and the rest goes to either state. */
		if (rand() % 2 && n) {
			go(goal, s, n, (size_t)rand() % (2 * n));
			size_t dead = (size_t)rand() % n;
			lost += s[dead] != CHECKPOINT_GONE && s[dead] != CHECKPOINT_FAILED;
			s[dead] = CHECKPOINT_GONE;
			goal = rand() % 2 ? CHECKPOINT_OUT : CHECKPOINT_IN;
		}
		assert_true(go(goal, s, n, checkpoint_most_steps(n)));
		assert_int_equal(count_in(s, n,
					  goal == CHECKPOINT_OUT ? CHECKPOINT_SAVED
								 : CHECKPOINT_RUNNING),
				 n - lost);
	}
}

static void test_all_are_locked_first(void **state)
{
	enum checkpoint_state s[] = { CHECKPOINT_LOCKED, CHECKPOINT_RUNNING };
	struct checkpoint_next next = checkpoint_next(CHECKPOINT_OUT, s, 2);
	assert_int_equal(next.step, CHECKPOINT_LOCK);
	assert_int_equal(next.index, 1);
	s[1] = CHECKPOINT_SAVED;
	assert_int_equal(checkpoint_next(CHECKPOINT_IN, s, 2).step, CHECKPOINT_RESTORE);
	assert_int_equal(checkpoint_next(CHECKPOINT_OUT, s, 2).step, CHECKPOINT_SAVE);
	assert_int_equal(checkpoint_next(CHECKPOINT_OUT, s, 0).step, CHECKPOINT_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_states_reach_the_goal),
		cmocka_unit_test(test_all_are_locked_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
