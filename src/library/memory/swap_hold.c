#include "library/memory/swap_hold.h"

#include "library/trace/trace_record.h"

#define NAP_NS (50 * NS_PER_MS)

enum hold_state { HOLD_OPEN, HOLD_CLOSED, HOLD_NO_ROOM };

static _Atomic uint32_t hold;   /* futex word, seq_cst; enum hold_state */
static _Atomic uint32_t inside; /* threads inside the hold; seq_cst; futex word while closed */
static __thread uint32_t depth; /* nested entries of this thread */

static void count_out(void)
{
	if (atomic_fetch_sub(&inside, 1) == 1 && atomic_load(&hold) != HOLD_OPEN)
		sys_futex_wake(&inside, 1);
}

static enum swap_pass try_enter(bool is_to_free)
{
	if (depth) {
		depth++;
		return SWAP_PASSED;
	}
	atomic_fetch_add(&inside, 1);
	uint32_t state = atomic_load(&hold);
	/* A process that exits may always enter, for example to free memory that is off the GPU. */
	if (likely(state == HOLD_OPEN) || (is_to_free && state == HOLD_NO_ROOM) ||
	    !process_is_active()) {
		depth = 1;
		return SWAP_PASSED;
	}
	count_out();
	return state == HOLD_CLOSED ? SWAP_HOLD_CLOSED : SWAP_NO_ROOM;
}

enum swap_pass swap_try_enter_held(void)
{
	return try_enter(false);
}

bool swap_is_inside(void)
{
	return depth;
}

void swap_leave_held(void)
{
	/* With depth 0, the process became swappable after this thread entered, so the thread was not counted as inside. */
	if (depth && --depth == 0)
		count_out();
}

void swap_wait(void)
{
	struct region_slot_device *d = process_slot_device(0);
	uint64_t begin = trace_begin();

	/* Tell the daemon that a thread needs the memory. */
	atomic_fetch_add(&d->waiting, 1);
	sys_futex_wait(&hold, HOLD_CLOSED, NAP_NS, false);
	atomic_fetch_sub(&d->waiting, 1);
	trace_wait(TRACE_AWAY_WAIT, 0, begin, 0, 0);
}

bool swap_enter(void)
{
	for (;;) {
		enum swap_pass pass = swap_try_enter();
		if (likely(pass == SWAP_PASSED))
			return true;
		if (pass == SWAP_NO_ROOM)
			return false;
		swap_wait();
	}
}

void swap_enter_to_free(void)
{
	while (swap_is_on() && try_enter(true) != SWAP_PASSED)
		swap_wait();
}

bool swap_hold_close(uint64_t patience_ns)
{
	uint64_t waited_ns = 0;
	uint32_t before = atomic_exchange(&hold, HOLD_CLOSED);
	for (uint32_t n; (n = atomic_load(&inside));) {
		if (waited_ns > patience_ns) {
			swap_hold_open(before != HOLD_NO_ROOM);
			return false;
		}
		waited_ns += sys_futex_nap(&inside, n, NS_PER_MS, false);
	}
	return true;
}

void swap_hold_open(bool has_room)
{
	atomic_store(&hold, (uint32_t)(has_room ? HOLD_OPEN : HOLD_NO_ROOM));
	sys_futex_wake(&hold, INT32_MAX);
}

void swap_hold_reset(void)
{
	atomic_store(&hold, HOLD_OPEN);
	atomic_store(&inside, 0);
	depth = 0;
}
