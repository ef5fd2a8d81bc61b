/*
 * Recording for `allot trace`: events of this process into its ring (abi/shm/trace.h). All of these do nothing in a
 * process that is not traced; on the way of a launch not even that is asked there (gate.c). Thread safe.
 */
#pragma once

#include "abi/shm/trace.h"
#include "library/state/process_state.h"
#include "library/sys/biased.h"

static inline bool trace_is_on(void)
{
	return unlikely(atomic_load_explicit(&process_state.detours, memory_order_relaxed) &
			DETOUR_TRACE);
}

#define TRACE_SEEN_BITS 12

/* Where events go. While nothing is traced, `ring` is the last one, or pages of zeros. */
struct trace_sink {
	/* In one line of the cache: between two launches the driver has used the nearest for itself. */
	_Alignas(64) struct trace_ring *_Atomic ring;
	_Atomic uint64_t next; /* events so far; the ring's own count moves by TRACE_STEP */
	_Atomic uint32_t clock;
	_Atomic uint32_t generation; /* counts traces: each records all names anew */
	/* The thread that owns `numbering`, once it is introduced, and while `seen` is of this trace and code; else 0. */
	_Atomic uint32_t owner_id;
	/* Of `next`: behind the driver's last store, to the card, an atomic instruction waits for that one. */
	struct biased_lock numbering;
	/* Keys whose names are in this trace already: a hash table (trace_work.h). */
	_Alignas(64) _Atomic uint64_t seen[1 << TRACE_SEEN_BITS];
	_Atomic uint64_t seen_when; /* trace_seen_now() for which `seen` is valid */
};

_Static_assert(offsetof(struct trace_sink, seen) == 64, "a line");

SYS_DATA struct trace_sink trace_sink;

/* Of which trace and code the names have to be: after an unload a handle may be another function's. */
static inline uint64_t trace_seen_now(void)
{
	return (uint64_t)atomic_load(&trace_sink.generation) << 32 |
	       atomic_load(&process_state.code_gone);
}

/* Functions go, or may have gone: of those that were proved or named none is known any more. */
static inline void trace_code_goes(void)
{
	atomic_fetch_add(&process_state.code_gone, 1);
	atomic_store(&trace_sink.owner_id, 0);
}

/* Of a traced process. */
static inline uint64_t trace_now(void)
{
	return trace_ticks(
		(enum trace_clock)atomic_load_explicit(&trace_sink.clock, memory_order_relaxed));
}

struct trace_thread {
	uint32_t id;
	uint32_t generation; /* as the sink's when its name was told; 0: never */
};

SYS_DATA __thread struct trace_thread trace_thread;

/* From here on it is recorded into this ring, by this clock. */
void trace_sink_begin(struct trace_ring *ring, enum trace_clock clock);

/* Tells the calling thread's name, and notes its id. */
void trace_introduce_thread(uint32_t generation);

/* By who has just come in: the owner, or whoever is going to be. */
static inline void trace_note_owner(enum biased_hold hold, uint32_t generation)
{
	uint64_t when = (uint64_t)generation << 32 | atomic_load(&process_state.code_gone);

	if (hold == BIASED_LOCKED)
		atomic_store(&trace_sink.owner_id, 0);
	if (hold == BIASED_SHARED || when != trace_seen_now() ||
	    atomic_load(&trace_sink.seen_when) != when ||
	    atomic_load(&trace_sink.owner_id) == trace_thread.id)
		return;
	atomic_store(&trace_sink.owner_id, trace_thread.id);
	/* Who says that code goes does so first, and then takes the id away. */
	if (when != trace_seen_now())
		atomic_store(&trace_sink.owner_id, 0);
}

/* trace_put() for those who record many: the event goes into the ring without being put together in memory. */
static inline __attribute__((always_inline)) void trace_put_here(struct trace_event event,
								 bool is_visit)
{
	struct trace_ring *ring = atomic_load_explicit(&trace_sink.ring, memory_order_acquire);
	uint32_t generation = atomic_load_explicit(&trace_sink.generation, memory_order_relaxed);

	if (unlikely(!ring))
		return;
	if (unlikely(trace_thread.generation != generation))
		trace_introduce_thread(generation);
	event.thread = trace_thread.id;
	enum biased_hold hold = is_visit ? biased_visit(&trace_sink.numbering)
					 : biased_enter(&trace_sink.numbering);
	if (!is_visit)
		trace_note_owner(hold, generation);
	uint64_t number = biased_add_wide(hold, &trace_sink.next, 1) + 1;
	biased_leave(&trace_sink.numbering, hold);
	/* These are few. */
	atomic_store_explicit(&ring->next, number, memory_order_relaxed);
	trace_ring_write(ring, number, &event);
}

/* Records the event as the calling thread's, and the thread's name at its first. */
void trace_put(const struct trace_event *event);
/* As one who does so once a trace: the others' way is not to be slower for it ever after. */
void trace_put_as_visitor(const struct trace_event *event);

/* Says what `key` is called from `since` (ticks) on; text is cut. Without a place for it, nothing. */
void trace_put_name(enum trace_name_kind kind, uint64_t key, uint64_t since, const char *text);

/* Memory: `kind` is TRACE_ALLOC, TRACE_FREE, TRACE_DENIED or TRACE_USED; a moment. A negative device is nobody's. */
void trace_memory_now(enum trace_kind kind, int device, uint64_t subject, uint64_t bytes);
static inline void trace_memory(enum trace_kind kind, int device, uint64_t subject, uint64_t bytes)
{
	if (trace_is_on())
		trace_memory_now(kind, device, subject, bytes);
}

/* What lasted from `begin` until now; 0: it began before it was traced, and is left out. */
void trace_wait(enum trace_kind kind, int device, uint64_t begin, uint64_t amount, uint16_t code);

static inline uint64_t trace_begin(void)
{
	return trace_is_on() ? trace_now() : 0;
}
