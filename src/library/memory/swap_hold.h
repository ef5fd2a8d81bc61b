/*
 * The hold: what keeps every thread of a swappable process out of the driver while its memory is not where
 * its pointers say (swap.h).
 *
 * A call that may touch device memory, or take some, is made between swap_enter() and swap_leave(). Who
 * wants to move memory shuts the hold first, and then waits until nobody is inside; a thread counts itself
 * inside first, and then looks whether it is shut. So of the two one sees the other. A shut hold is opened
 * again within seconds where somebody inside doesn't come out: nobody waits here for a thread that waits
 * for him.
 *
 * Entering is nested within a thread; waiting for a lease inside the hold would keep memory from moving,
 * so work enters it last, in the gate. Nothing, one load, in a process that isn't swappable. Thread safe.
 */
#pragma once

#include "abi/cuda_abi.h"
#include "library/state/process_state.h"

enum swap_pass {
	SWAP_PASSED,  /* inside: swap_leave() afterwards */
	SWAP_IS_SHUT, /* of swap_try_enter(): swap_wait(), then again */
	SWAP_NO_ROOM, /* memory is out and the card has no room for it: CUDA_ERROR_OUT_OF_MEMORY */
};

/* The calls for a swappable process. */
enum swap_pass swap_try_enter_held(void);
void swap_leave_held(void);

static inline bool swap_is_on(void)
{
	return unlikely(atomic_load_explicit(&process_state.detours, memory_order_relaxed) &
			DETOUR_HOLD);
}

/* Without waiting; SWAP_PASSED where nothing is held. */
static inline enum swap_pass swap_try_enter(void)
{
	return swap_is_on() ? swap_try_enter_held() : SWAP_PASSED;
}

/* Is this thread inside? */
bool swap_is_inside(void);

/* Waits while the hold is shut, or a while. */
void swap_wait(void);

/* Both. False: SWAP_NO_ROOM, and not inside. */
bool swap_enter(void);
/* The same for what needs no memory, and is done with memory that is out as well. Inside in any case. */
void swap_enter_to_free(void);

static inline void swap_leave(void)
{
	if (swap_is_on())
		swap_leave_held();
}

/*
 * Holds memory where it is to the end of the function; which returns CUDA_ERROR_OUT_OF_MEMORY when it can't
 * be had. First in a hook, before any lock.
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
/* The same in a hook that gives memory back, or touches none. */
#define WITH_MEMORY_STILL() \
	__attribute__((cleanup(swap_leave_always), unused)) bool is_memory_still = true; \
	swap_enter_to_free()

/* ---- for swap.c alone ---- */

/* Shuts it and waits until nobody is inside, for patience_ns at most: then it is as before, and false. */
bool swap_hold_shut(uint64_t patience_ns);
/* Opens it, or, with has_room false, lets the calls fail. */
void swap_hold_open(bool has_room);

/* In a forked child. */
void swap_hold_reset(void);
