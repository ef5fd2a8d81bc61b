/*
 * The open door: how a launch in free run passes without all of the gate.
 *
 * Between two launches runs a microsecond or more of driver code, which leaves nothing of ours in the
 * first-level caches. So what a launch costs is not its instructions, but how many lines of the cache it
 * touches, of data and of code. Through the door these are three of data: the door itself, the first of the
 * stream's record, and the lease word; and of code what the wrapper is long.
 *
 * The door of a device is open while all that the gate would look at is known to let launches pass: this
 * process is the tenant's and not swappable, no capture is under way, work in flight has room, and the device is shown as
 * busy. The lease alone is read each time. Who changes one of these to its contrary does so first and then
 * shuts the door; launches then take the gate, which opens it again (door_offer()) when all is well.
 * Both hold the lock, so that what was shut is not opened by one who looked before.
 *
 * While the process is traced it leads to functions that record the launch (trace_launch.h): being traced begins and
 * ends with the door shut.
 *
 * Explicit streams pass, and the legacy default stream while there is but one context: else the driver must be asked whose it is,
 * (FLIGHT_ONLY_PLACE). A thread's own default stream is the gate's.
 *
 * In a forked child the kernel has zeroed it (MADV_WIPEONFORK), so there it is shut. Thread safe.
 */
#ifndef ALLOT_INTERPOSE_DOOR_H
#define ALLOT_INTERPOSE_DOOR_H

#include "interpose/flight.h"
#include "interpose/guest.h"
#include "interpose/real.h"

#ifdef __aarch64__
#define DOOR_PAGE 65536 /* the largest there is */
#else
#define DOOR_PAGE 4096
#endif
#define DOOR_ALL UINT32_MAX

struct door {
	_Alignas(DOOR_PAGE) _Atomic uint32_t open; /* devices (bits) */
	struct sys_lock lock; /* of all changes; inside it nothing else is locked */
	const struct region_control *_Atomic control;
	struct {
		DRIVER_TABLE_LAUNCH(SLOT_WORK)
	} real; /* as in the struct of that name, which lies further away; or as in trace_launch */
};

_Static_assert(offsetof(struct door, real) + sizeof(((struct door *)0)->real) <= 64,
	       "what a launch looks at is one line of the cache");

SYS_DATA struct door door;

/* Before the first offer: has forked children find it shut. Where that can't be had it stays shut. */
void door_prepare(void);

/* After a launch that was let pass by the gate: opens the device's door if all is well. */
void door_offer(int device);

/* After the change that it is shut for. */
void door_shut(uint32_t devices);

/* Of any device. */
static inline bool door_is_open(void)
{
	return atomic_load_explicit(&door.open, memory_order_relaxed) != 0;
}

/* The stream's record if a launch may pass now, without gate_enter(); then door_leave(). NULL: the gate. */
static inline struct flight_stream *door_pass(CUstream stream)
{
	/* CU_STREAM_LEGACY is what NULL is; no other handle is odd. */
	uintptr_t key = (uintptr_t)stream & ~(uintptr_t)CU_STREAM_LEGACY;
	struct flight_stream *s = flight_place(flight_hash((CUstream)key, 0));

	__asm__("" : "+r"(s)); /* or the compiler reckons each field's address anew from the hash */
	if (unlikely(atomic_load_explicit(&s->door_key, memory_order_relaxed) != key))
		return NULL;
	/* A record that is not in use has no device, so that no NULL passes. */
	if (unlikely(!(atomic_load_explicit(&door.open, memory_order_acquire) &
		       atomic_load_explicit(&s->door_device, memory_order_relaxed))))
		return NULL;
	const struct region_control *control = atomic_load_explicit(&door.control,
								    memory_order_relaxed);
	const _Atomic uint32_t *lease = (const void *)((const char *)control + s->lease_at);
	return likely(lease_state_of(atomic_load(lease)) == LEASE_FREE) ? s : NULL;
}

CUresult door_leave_slowly(struct flight_stream *s); /* CUDA_SUCCESS */

/* After the real call. Returns its result, which is the wrapper's as well. */
static inline CUresult door_leave(struct flight_stream *s, CUresult result)
{
	if (unlikely(result != CUDA_SUCCESS))
		return result; /* nothing is left in flight */
	/* The door is looked at again: the helper may meanwhile have found that nothing was in flight. */
	if (unlikely(flight_count(s) ||
		     !(atomic_load_explicit(&door.open, memory_order_relaxed) &
		       atomic_load_explicit(&s->door_device, memory_order_relaxed))))
		return door_leave_slowly(s);
	return CUDA_SUCCESS;
}

#endif
