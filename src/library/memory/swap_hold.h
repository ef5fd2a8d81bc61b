/*
 * The hold keeps every thread of a swappable process out of the driver while the process's memory is not at its
 * addresses (swap.h).
 *
 * A call that may access or allocate device memory runs between swap_enter() and swap_leave(). The thread that
 * moves memory first shuts the hold, and then waits until no thread is inside. A calling thread first counts
 * itself inside, and then checks whether the hold is shut. So one of the two sees the other. If a thread inside
 * does not come out, the hold opens again within seconds. So two threads never wait for each other here.
 *
 * A thread may enter several times, nested. A thread that waited for a lease inside the hold would keep memory
 * from moving; so work enters the hold last, in the gate. In a process that is not swappable, all this costs one
 * load. Thread safe.
 */
#pragma once

#include "abi/cuda_abi.h"
#include "library/state/process_state.h"

enum swap_pass {
	SWAP_PASSED, /* the thread is inside the hold; call swap_leave() afterwards */
	/* Returned by swap_try_enter() only: call swap_wait(), then try again. */
	SWAP_IS_SHUT,
	/* The memory was moved off the GPU, and the GPU has no room for it: fail with CUDA_ERROR_OUT_OF_MEMORY. */
	SWAP_NO_ROOM,
};

/* The parts of swap_try_enter() and swap_leave() for a swappable process. */
enum swap_pass swap_try_enter_held(void);
void swap_leave_held(void);

static inline bool swap_is_on(void)
{
	return unlikely(atomic_load_explicit(&process_state.detours, memory_order_relaxed) &
			DETOUR_HOLD);
}

/* Enters the hold if it is not shut; does not wait. Returns SWAP_PASSED also if the process is not swappable. */
static inline enum swap_pass swap_try_enter(void)
{
	return swap_is_on() ? swap_try_enter_held() : SWAP_PASSED;
}

/* True if the calling thread is inside. */
bool swap_is_inside(void);

/* Waits until the hold is no longer shut, but only for a short time. */
void swap_wait(void);

/* Tries and waits until the thread is inside. Returns false for SWAP_NO_ROOM; then the thread is not inside. */
bool swap_enter(void);
/*
 * As swap_enter(), for calls that need no memory and work also while memory is off the GPU. The thread is always
 * inside afterwards.
 */
void swap_enter_to_free(void);

static inline void swap_leave(void)
{
	if (swap_is_on())
		swap_leave_held();
}

/*
 * Keeps memory in place until the end of the function. If the memory cannot be on the GPU, the function returns
 * CUDA_ERROR_OUT_OF_MEMORY. Use it first in a hook, before any lock.
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
/* As WITH_MEMORY_HELD(), in a hook that frees memory or accesses none. */
#define WITH_MEMORY_STILL() \
	__attribute__((cleanup(swap_leave_always), unused)) bool is_memory_still = true; \
	swap_enter_to_free()

/* ---- for swap.c alone ---- */

/*
 * Shuts the hold and waits until no thread is inside, for at most patience_ns. On timeout, restores the earlier
 * state and returns false.
 */
bool swap_hold_shut(uint64_t patience_ns);
/* Opens the hold. If has_room is false, calls that need memory fail instead of entering. */
void swap_hold_open(bool has_room);

/* Call in a forked child: forgets the state of the parent. */
void swap_hold_reset(void);
