/* Chunks of the arena: which process has them, and where bytes lie in them. */
#include "../test.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/swap/swap_arena.h"

#define MIB (1ULL << 20)
#define CHUNK (32 * MIB)
#define ARENA (3 * CHUNK + 6 * MIB) /* the last is short */

static uint8_t *memory;

static int setup(void **state)
{
	fake_process_start(3);
	for (int i = 0; i < 3; i++)
		fake_report->slot[i].state = SLOT_LIVE;
	fake_control->arena_bytes = ARENA;
	fake_control->arena_ready_bytes = ARENA;
	swap_arena_reset();
	swap_arena_begin(memory, ARENA);
	return 0;
}

static void end_slot(uint32_t slot)
{
	fake_process_clear_slot(slot);
	fake_report->slot[slot].state = SLOT_EMPTY;
}

/* Another process of the tenant takes this much; returns what it could take. */
static bool provide_in_slot(uint32_t slot, uint64_t bytes)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		fake_process_take_slot(slot);
		swap_arena_reset();
		swap_arena_begin(memory, ARENA);
		_exit(swap_arena_reserve(bytes) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_processes_share_it(void **state)
{
	assert_true(swap_arena_reserve(1));
	assert_true(swap_arena_reserve(CHUNK)); /* has it already */
	assert_false(provide_in_slot(1, 2 * CHUNK + 6 * MIB + 1));
	/* The chunks of a dead process are free for others once the daemon has cleared its slot. */
	assert_false(swap_arena_reserve(ARENA));
	end_slot(1);
	assert_true(swap_arena_reserve(ARENA));
	assert_false(swap_arena_reserve(ARENA + 1));
	assert_false(provide_in_slot(2, 1));
}

static void test_positions(void **state)
{
	uint64_t run;

	assert_true(swap_arena_reserve(ARENA));
	assert_ptr_equal(swap_arena_at(0, &run), memory);
	assert_int_equal(run, CHUNK);
	assert_ptr_equal(swap_arena_at(CHUNK - 1, &run), memory + CHUNK - 1);
	assert_int_equal(run, 1);
	assert_ptr_equal(swap_arena_at(CHUNK, &run), memory + CHUNK);
	assert_ptr_equal(swap_arena_at(3 * CHUNK + MIB, &run), memory + 3 * CHUNK + MIB);
	assert_int_equal(run, 5 * MIB);
}

/* A short chunk in the middle of the process's chunks. */
static void test_positions_round_a_short_chunk(void **state)
{
	uint64_t run;

	assert_true(provide_in_slot(1, CHUNK));
	assert_true(swap_arena_reserve(2 * CHUNK + 6 * MIB)); /* chunks 1, 2, 3 */
	end_slot(1);
	assert_true(swap_arena_reserve(ARENA)); /* and 0 */
	assert_ptr_equal(swap_arena_at(2 * CHUNK + 5 * MIB, &run), memory + 3 * CHUNK + 5 * MIB);
	assert_int_equal(run, MIB);
	assert_ptr_equal(swap_arena_at(2 * CHUNK + 6 * MIB, &run), memory);
	assert_int_equal(run, CHUNK);
}

/* Without memory behind it nothing may be copied there. */
static void test_memory_behind_it(void **state)
{
	assert_true(swap_arena_reserve(2 * CHUNK));
	fake_control->arena_ready_bytes = 2 * CHUNK - 1;
	assert_true(swap_arena_is_ready(CHUNK));
	assert_false(swap_arena_is_ready(2 * CHUNK));
	fake_control->arena_ready_bytes = 2 * CHUNK;
	assert_true(swap_arena_is_ready(2 * CHUNK));
	assert_false(swap_arena_is_ready(2 * CHUNK + 1)); /* not owned */
	/* A daemon that did not make the arena has no record of it: the chunks stay, and no more are taken. */
	fake_control->arena_bytes = 0;
	fake_control->arena_ready_bytes = 0;
	assert_true(swap_arena_is_ready(2 * CHUNK));
	assert_false(swap_arena_reserve(2 * CHUNK + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_processes_share_it, setup),
		cmocka_unit_test_setup(test_positions, setup),
		cmocka_unit_test_setup(test_positions_round_a_short_chunk, setup),
		cmocka_unit_test_setup(test_memory_behind_it, setup),
	};

	memory = mmap(NULL, ARENA, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
