/*
 * Recording for `allot trace`: writes events of this process into its ring (abi/shm/trace_ring.h). No effect if the process is
 * not traced, which the launch path checks itself (gate.c). Thread safe.
 */
#pragma once

#include "abi/shm/trace_ring.h"
#include "library/state/process_state.h"
#include "library/sys/biased.h"

static inline bool trace_is_on(void)
{
	return unlikely(atomic_load_explicit(&process_state.detours, memory_order_relaxed) &
			DETOUR_TRACE);
}

#define TRACE_SEEN_BITS 12

/* `ring` is NULL before the first trace, and has pages of zeros after each. */
struct trace_sink {
	/* The fields before `seen` share a cache line, because the driver evicts the first-level cache between two launches. */
	_Alignas(64) struct trace_ring *_Atomic ring;
	/* Events so far. A kernel launch updates the ring's own `next` only once per TRACE_STEP events. */
	_Atomic uint64_t next;
	_Atomic uint32_t clock;
	_Atomic uint32_t generation; /* counts traces; each trace records all names anew */
	/* The thread that owns `numbering`, or 0. Set once that thread's name is recorded and `seen` is valid. */
	_Atomic uint32_t owner_id;
	/* Guards `next` without atomic instructions, which would wait for the driver's last store to the GPU. */
	struct biased_lock numbering;
	/* A hash table of keys, such as kernels, whose names this trace has (trace_work.h). */
	_Alignas(64) _Atomic uint64_t seen[1 << TRACE_SEEN_BITS];
	_Atomic uint64_t seen_when; /* value of trace_seen_now() for which `seen` is valid */
};

_Static_assert(offsetof(struct trace_sink, seen) == 64, "a line");

SYS_DATA struct trace_sink trace_sink;

/* Changes with each trace and each unload of code. Handles may then name other functions, so record names anew. */
static inline uint64_t trace_seen_now(void)
{
	return (uint64_t)atomic_load(&trace_sink.generation) << 32 |
	       atomic_load(&process_state.code_unloads);
}

/* Call before functions are, or may be, unloaded. */
static inline void trace_code_unloads(void)
{
	atomic_fetch_add(&process_state.code_unloads, 1);
	atomic_store(&trace_sink.owner_id, 0);
}

/* The time in ticks. Valid only in a traced process. */
static inline uint64_t trace_now(void)
{
	return trace_ticks(
		(enum trace_clock)atomic_load_explicit(&trace_sink.clock, memory_order_relaxed));
}

struct trace_thread {
	uint32_t id;
	/* trace_sink.generation when the thread's name was recorded; 0 if never. */
	uint32_t generation;
};

SYS_DATA __thread struct trace_thread trace_thread;

void trace_sink_begin(struct trace_ring *ring, enum trace_clock clock);

void trace_record_thread_name(uint32_t generation);

/*
 * Call while holding `numbering`. Clears owner_id if that lock's owner changes. If the calling thread is the owner and `seen`
 * is valid, sets owner_id, and the thread may use trace_kernel_quickly().
 */
static inline void trace_note_owner(enum biased_hold hold, uint32_t generation)
{
	uint64_t when = (uint64_t)generation << 32 | atomic_load(&process_state.code_unloads);

	if (hold == BIASED_LOCKED)
		atomic_store(&trace_sink.owner_id, 0);
	if (hold == BIASED_SHARED || when != trace_seen_now() ||
	    atomic_load(&trace_sink.seen_when) != when ||
	    atomic_load(&trace_sink.owner_id) == trace_thread.id)
		return;
	atomic_store(&trace_sink.owner_id, trace_thread.id);
	/* trace_code_unloads() may just have cleared owner_id. It changes trace_seen_now() first, so compare again. */
	if (when != trace_seen_now())
		atomic_store(&trace_sink.owner_id, 0);
}

/*
 * Records the event and, at the thread's first event in a trace, the thread's name. is_visit: for a thread that records once
 * per trace; it does not take ownership of `numbering`, so that other threads stay fast.
 */
static inline __attribute__((always_inline)) void trace_put(struct trace_event event, bool is_visit)
{
	struct trace_ring *ring = atomic_load_explicit(&trace_sink.ring, memory_order_acquire);
	uint32_t generation = atomic_load_explicit(&trace_sink.generation, memory_order_relaxed);

	if (unlikely(!ring))
		return;
	if (unlikely(trace_thread.generation != generation))
		trace_record_thread_name(generation);
	event.thread = trace_thread.id;
	enum biased_hold hold = is_visit ? biased_visit(&trace_sink.numbering)
					 : biased_enter(&trace_sink.numbering);
	if (!is_visit)
		trace_note_owner(hold, generation);
	uint64_t number = biased_add_wide(hold, &trace_sink.next, 1) + 1;
	biased_leave(&trace_sink.numbering, hold);
	/* Unlike kernel launches (trace_kernel_quickly()), these events are few, so write the ring's count each time. */
	atomic_store_explicit(&ring->next, number, memory_order_relaxed);
	trace_ring_write(ring, number, &event);
}

/* The name is valid from `since` (ticks) on. Long names are cut. If there is no room, nothing is recorded. */
void trace_put_name(enum trace_name_kind kind, uint64_t key, uint64_t since, const char *text);

/* `kind` is TRACE_ALLOC, TRACE_FREE, TRACE_DENIED or TRACE_USED. Does nothing if `device` is negative. */
void trace_memory_now(enum trace_kind kind, int device, uint64_t subject, uint64_t bytes);
static inline void trace_memory(enum trace_kind kind, int device, uint64_t subject, uint64_t bytes)
{
	if (trace_is_on())
		trace_memory_now(kind, device, subject, bytes);
}

/* Records an event from `begin` until now. `begin` is of trace_begin(); if 0, the process was not traced then. */
void trace_wait(enum trace_kind kind, int device, uint64_t begin, uint64_t amount, uint16_t code);

/* The `begin` of an event for trace_wait(), in ticks; 0 if the process is not traced. */
static inline uint64_t trace_begin(void)
{
	return trace_is_on() ? trace_now() : 0;
}
