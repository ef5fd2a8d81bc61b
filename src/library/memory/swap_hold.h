/*
 * The hold keeps the threads of a swappable process out of the driver while the process's memory is off the GPU (swap.h).
 *
 * A call that may access or allocate device memory runs inside the hold, between swap_enter() and swap_leave(). The thread that
 * moves memory first closes the hold, and then waits until no thread is inside. Another thread first counts itself inside, and
 * then checks whether the hold is closed. So at least one of the two threads sees the other. If a thread inside does not leave,
 * the hold opens again within seconds, so there is no deadlock.
 *
 * A thread may enter several times, nested. Work enters the hold last, in the gate: a thread that waited for a lease inside
 * would keep memory from moving. In a process that is not swappable, all this costs one load. Thread safe.
 */
#pragma once

#include "abi/cuda_abi.h"
#include "library/state/process_state.h"

enum swap_pass {
	SWAP_PASSED, /* inside the hold; call swap_leave() afterwards */
	/* Only of swap_try_enter(): call swap_wait(), then try again. */
	SWAP_HOLD_CLOSED,
	/* The GPU has no room for the process's memory: fail with CUDA_ERROR_OUT_OF_MEMORY. */
	SWAP_NO_ROOM,
};

enum swap_pass swap_try_enter_held(void);
void swap_leave_held(void);

static inline bool swap_is_on(void)
{
	return unlikely(atomic_load_explicit(&process_state.detours, memory_order_relaxed) &
			DETOUR_HOLD);
}

/* Does not wait. SWAP_PASSED also if the process is not swappable. */
static inline enum swap_pass swap_try_enter(void)
{
	return swap_is_on() ? swap_try_enter_held() : SWAP_PASSED;
}

/* Whether the calling thread is inside the hold. */
bool swap_is_inside(void);

/* Waits a short time for the hold to open. */
void swap_wait(void);

/* Waits until the thread is inside the hold. Returns false for SWAP_NO_ROOM; then the thread is outside. */
bool swap_enter(void);
/* For calls that need no memory on the GPU. The thread is always inside afterwards, even if the GPU has no room. */
void swap_enter_to_free(void);

static inline void swap_leave(void)
{
	if (swap_is_on())
		swap_leave_held();
}

/*
 * WITH_MEMORY_HELD() keeps memory on the GPU until the end of the calling function. If the memory cannot be on the GPU, that
 * function returns CUDA_ERROR_OUT_OF_MEMORY. Use this first in a hook, before any lock.
 */
static inline void swap_leave_cleanup(bool *is_inside)
{
	if (*is_inside)
		swap_leave();
}
#define WITH_MEMORY_HELD() \
	__attribute__((cleanup(swap_leave_cleanup), unused)) bool is_memory_held = swap_enter(); \
	if (!is_memory_held) \
	return CUDA_ERROR_OUT_OF_MEMORY

static inline void swap_leave_always(const bool *unused)
{
	swap_leave();
}
/* Like WITH_MEMORY_HELD(), but never fails: for a hook that frees memory or accesses none. */
#define WITH_MEMORY_STILL() \
	__attribute__((cleanup(swap_leave_always), unused)) bool is_memory_still = true; \
	swap_enter_to_free()

/* The functions below are for swap.c and swap_quiesce.c. */

/* Closes the hold and waits until no thread is inside. After patience_ns, restores the earlier state and returns false. */
bool swap_hold_close(uint64_t patience_ns);
/* If has_room is false, calls that need no memory may enter; all other calls fail (SWAP_NO_ROOM). */
void swap_hold_open(bool has_room);

/* Call in a forked child. */
void swap_hold_reset(void);
