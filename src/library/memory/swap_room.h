/*
 * Allocations and contexts that the quota allows and the card has no room for, in a swappable process: they
 * wait, and the daemon sends others off the card for them (swap.h). Thread safe.
 *
 *     return WITH_ROOM(try_to_allocate(...));
 *
 * makes the call until it succeeds, or fails for another reason, or there is no hope of room. Out of memory is another
 * reason too where the GPU has more than enough before and after the try: a driver says so of what it can't do, such as
 * a context by the cuCtxCreate of before CUDA 3.2. The call notes
 * by swap_room_lacks() that it failed for that; charge.h does for what is charged. Between two tries the process
 * holds nothing (swap_hold.h), so that its own memory may leave the card meanwhile; a call that is made by another
 * one inside the hold leaves the waiting to that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "library/state/process_state.h"

/* One call's wait. */
struct swap_room {
	int device;
	uint64_t bytes; /* wanted; 0: it has not waited */
	uint64_t since_ns;
	uint64_t trace_begin; /* for the trace; 0: it is in none */
	bool had_room;        /* of a refusal by the driver: the GPU had room all the same */
};

/* The thread's last try found no room for so many bytes on the device, which its quota allows; `is_drivers`: said the driver. */
void swap_room_lacks(int device, uint64_t bytes, bool is_drivers);

/* The same after a call of the driver's, if that is what it said. Memory of no device of ours is nobody's affair here. */
static inline void swap_room_note(CUresult result, int device, uint64_t bytes)
{
	if (unlikely(result == CUDA_ERROR_OUT_OF_MEMORY) && device >= 0 && device != REGION_HOST)
		swap_room_lacks(device, bytes, true);
}

/*
 * Before one: the bytes, which are reserved already, would take room of the card that is kept for another tenant's return. That
 * is noted too, and the call is not to be made.
 */
bool swap_room_is_kept(int device, uint64_t bytes);

/* Call before the first try of an allocation. */
void swap_room_begin(struct swap_room *room);
/* Call after each try; true: try again. */
bool swap_room_again(struct swap_room *room, CUresult result);

#define WITH_ROOM(call) \
	({ \
		struct swap_room with_room; \
		CUresult with_result; \
		swap_room_begin(&with_room); \
		do \
			with_result = (call); \
		while (swap_room_again(&with_room, with_result)); \
		with_result; \
	})

/* Wants `bytes` more on the device (index in the tenant's list) from here on, until no more (negative). */
void swap_want(int device, int64_t bytes);

/* Of all threads. */
uint64_t swap_wanted(int device);

/*
 * Waits a while, for as many times as the daemon says that room will be made; *since_ns is moved to the last
 * time that it did. False: for a minute since then there was no hope, or no daemon.
 */
bool swap_wait_for_room(uint64_t *since_ns);

/* In a forked child. */
void swap_room_reset(void);
