/*
 * In a swappable process, an allocation or a context may fit the quota while the GPU has no room. Such a call waits, and the
 * daemon moves other tenants' memory off the GPU (swap.h). Thread safe.
 *
 *     return WITH_ROOM(try_to_allocate(...));
 *
 * repeats the call until it succeeds, fails for another reason, or room is no longer expected. The loop also stops after two
 * failures in a row at which the GPU had more than enough room: drivers return "out of memory" also for calls that they cannot
 * carry out, such as the cuCtxCreate from before CUDA 3.2.
 *
 * The call reports by swap_room_record_shortage() that it failed for lack of room; holding.h does so for charged memory.
 * Between two tries the thread is outside the hold (swap_hold.h), so that the process's own memory may be moved off the GPU. A
 * call made inside another call's hold does not wait itself; the outer call does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "library/state/process_state.h"

struct swap_room {
	int device;
	uint64_t bytes; /* for which the call waits; 0 if none yet */
	uint64_t since_ns;
	uint64_t trace_begin; /* ticks; 0 if not traced */
	bool had_room;        /* at the driver's last refusal, the GPU had enough room */
};

/* The thread's last try found no room for `bytes`, although the quota allows them. is_drivers: the driver said so. */
void swap_room_record_shortage(int device, uint64_t bytes, bool is_drivers);

static inline void swap_room_check_result(CUresult result, int device, uint64_t bytes)
{
	if (unlikely(result == CUDA_ERROR_OUT_OF_MEMORY) && device >= 0 && device != REGION_HOST)
		swap_room_record_shortage(device, bytes, true);
}

/* Call with `bytes` reserved. True: the free GPU memory is kept for another tenant, so do not call the driver. */
bool swap_room_is_reserved(int device, uint64_t bytes);

void swap_room_begin(struct swap_room *room);
/* Call after each try. Returns true if the caller should try again. */
bool swap_room_should_retry(struct swap_room *room, CUresult result);

#define WITH_ROOM(call) \
	({ \
		struct swap_room with_room; \
		CUresult with_result; \
		swap_room_begin(&with_room); \
		do \
			with_result = (call); \
		while (swap_room_should_retry(&with_room, with_result)); \
		with_result; \
	})

/* The bytes for which all threads of the process wait. */
uint64_t swap_wanted_bytes(int device);

/*
 * Sleeps for a moment and returns true if the caller should try again. While the daemon says that room will be made
 * (swap_hope), sets *since_ns to now. Returns false a minute after *since_ns.
 */
bool swap_wait_for_room(uint64_t *since_ns);

/* Call in a forked child: no thread waits there. */
void swap_room_reset(void);
