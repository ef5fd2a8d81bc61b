/*
 * The records of a traced process (library/trace/trace.h): a ring of events and a list of names. The daemon creates the memory
 * file for them, sealed against shrinking and growing. The process writes the file; `allot trace` gets it from the daemon and
 * does not trust its contents.
 *
 * To record an event, a thread takes the next number and overwrites the oldest event, trace_ring.place[number % TRACE_EVENTS].
 * A reader that is too slow loses the oldest events, and the numbers show how many. trace_place.number is 0 while the event is
 * written, and is set last. So a reader has a complete event if `number` was the same before and after the copy.
 *
 * A process asks for its ring on the tenant's socket, as in registration.h, once region_control.trace says that the tenant is
 * traced:
 *
 *   process -> daemon   struct trace_request
 *   daemon -> process   struct trace_reply; if status is 0, with the file's descriptor
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/trace_clock.h"

#define TRACE_MAGIC 0x746c6c61U /* "allt" */
#define TRACE_VERSION 1U
#define TRACE_EVENTS 65536U /* a power of two; 0.16 s at 400,000 launches a second */
/* trace_ring.next is updated only once per this many events, to save stores */
#define TRACE_STEP 64U
#define TRACE_NAMES 4096U
#define TRACE_NAME_MAX 232 /* bytes of a name, including the NUL */

/* region_control.trace: the clock in its low 8 bits (TRACE_NO_CLOCK: not traced), a counter of changes above them. */
#define TRACE_CLOCK_MASK 0xffU
#define TRACE_ORDER_STEP 0x100U

static inline enum trace_clock trace_clock_of(uint32_t order)
{
	return (enum trace_clock)(order & TRACE_CLOCK_MASK);
}

/* Kinds of events, and for each the meaning of struct trace_event's fields other than device, thread and time. */
enum trace_kind {
	/*
	 * TRACE_KERNEL to TRACE_SYNC: work handed to the driver. subject: the function, the executable graph, or the entry
	 * point (trace_name.key); object: stream; amount: blocks, or bytes of a copy; extra: threads per block; code: the
	 * driver's result.
	 */
	TRACE_KERNEL = 1,
	TRACE_GRAPH,
	TRACE_COPY, /* copies and memsets that return at once */
	TRACE_SYNC, /* copies and memsets that are complete when the call returns */
	/* The gate held a thread (library/launch/gate.h). amount: TRACE_WAIT_ flags of all reasons for the wait. */
	TRACE_GATE_WAIT,
	/* TRACE_ALLOC to TRACE_DENIED: memory. subject: address or handle; amount: bytes (for TRACE_DENIED: requested). */
	TRACE_ALLOC,
	TRACE_FREE,
	TRACE_DENIED,
	/* amount: the memory that the process uses on the device */
	TRACE_USED,
	/* an allocation waited for memory. amount: bytes; code: 0 if it got the memory */
	TRACE_MEMORY_WAIT,
	TRACE_AWAY_WAIT, /* a call waited because the process's memory was swapped out */
	/* memory moved from the GPU to host memory. amount: bytes; code: 0 if the move succeeded */
	TRACE_SWAP_OUT,
	TRACE_SWAP_IN,
	TRACE_KINDS
};

enum trace_wait {
	TRACE_WAIT_LEASE = 1, /* another tenant had the GPU */
	TRACE_WAIT_TURN = 2,  /* another process of the tenant had its turn */
	TRACE_WAIT_DEPTH = 4, /* the process had enough work in flight */
	TRACE_WAIT_GRANT = 8, /* the tenant had no tokens left (LEASE_PACED) */
	TRACE_WAIT_CAP = 16,  /* the daemon was gone, and the tenant had used all of its cap */
};

#define TRACE_LEASED 1U     /* flag of work: started under a lease */
#define TRACE_PER_THREAD 2U /* flag of work: started on the thread's own default stream */

struct trace_event {
	/* ticks; `end` equals `begin` for an instant event, or a launch that was not timed */
	uint64_t begin, end;
	uint32_t thread; /* gettid() */
	uint8_t kind;
	/* index in the tenant's list of devices, or REGION_HOST */
	uint8_t device;
	uint16_t code;
	uint64_t subject, object, amount;
	uint32_t extra, flags;
};

#define TRACE_EVENT_WORDS (sizeof(struct trace_event) / sizeof(uint64_t))

struct trace_place {
	/* the event's number, from 1; 0 while the event is written, or if there was none yet */
	_Alignas(64) _Atomic uint64_t number;
	_Atomic uint64_t word[TRACE_EVENT_WORDS];
};

/* The name of a function, a driver call or a thread, valid from the time `since` on. */
enum trace_name_kind { TRACE_NAMES_FUNCTION = 1, TRACE_NAMES_ENTRY, TRACE_NAMES_THREAD };

struct trace_name {
	_Atomic uint32_t is_written;
	uint32_t kind;
	/* trace_event.subject of the function's or call's events; for a thread, its gettid() */
	uint64_t key;
	uint64_t since; /* ticks */
	char text[TRACE_NAME_MAX];
};

struct trace_ring {
	uint32_t magic;
	uint32_t version;
	uint32_t size_bytes;
	uint32_t clock;
	_Alignas(64) _Atomic uint64_t next; /* events so far, or up to TRACE_STEP fewer */
	/* names so far; those beyond TRACE_NAMES are not stored */
	_Alignas(64) _Atomic uint32_t name_count;
	struct trace_place place[TRACE_EVENTS];
	struct trace_name name[TRACE_NAMES];
};

struct trace_request {
	uint32_t magic;
	uint32_t version;
	uint32_t order; /* the value of region_control.trace that caused this request */
	uint32_t reserved;
};

struct trace_reply {
	uint32_t magic;
	uint32_t version;
	int32_t status; /* 0, or a positive errno; ENOENT if the trace of `order` has ended */
	uint32_t reserved;
};

_Static_assert(sizeof(struct trace_event) == 56 && sizeof(struct trace_place) == 64, "cache line");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as trace_ring_write() packs an event");
_Static_assert(sizeof(struct trace_name) == 256, "name layout");
_Static_assert((TRACE_EVENTS & (TRACE_EVENTS - 1)) == 0, "a power of two");

static inline bool trace_ring_is_valid(const struct trace_ring *ring)
{
	return ring->magic == TRACE_MAGIC && ring->version == TRACE_VERSION &&
	       ring->size_bytes == sizeof(*ring);
}

static inline void trace_prefetch(const void *line)
{
#if defined(__x86_64__)
	/* prefetchw fetches for writing. The compiler's builtin would do so only if newer processors are targeted. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/*
 * Writes the event `number`; the calling thread has taken that number for itself. Shifts pack the fields into words, because
 * storing the fields one by one and loading them as words would stall the processor.
 */
static inline __attribute__((always_inline)) void trace_ring_write(struct trace_ring *ring,
								   uint64_t number,
								   const struct trace_event *e)
{
	struct trace_place *p = &ring->place[number % TRACE_EVENTS];
	uint64_t what = e->thread | (uint64_t)e->kind << 32 | (uint64_t)e->device << 40 |
			(uint64_t)e->code << 48;
	const uint64_t words[TRACE_EVENT_WORDS] = {
		e->begin,
		e->end,
		what,
		e->subject,
		e->object,
		e->amount,
		e->extra | (uint64_t)e->flags << 32,
	};

	/* Another processor may hold the next place's cache line, so fetch that line while the driver works. */
	trace_prefetch(&ring->place[(number + 1) % TRACE_EVENTS]);
	atomic_store_explicit(&p->number, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
#pragma GCC unroll 7
	for (size_t i = 0; i < TRACE_EVENT_WORDS; i++)
		atomic_store_explicit(&p->word[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&p->number, number, memory_order_release);
}

/* False if the place of event `number` holds another or an incomplete event, whose number is then *ret_there. */
static inline bool trace_ring_get(const struct trace_ring *ring, uint64_t number,
				  struct trace_event *ret, uint64_t *ret_there)
{
	const struct trace_place *p = &ring->place[number % TRACE_EVENTS];
	union {
		struct trace_event event;
		uint64_t word[TRACE_EVENT_WORDS];
	} as;

	*ret_there = atomic_load_explicit(&p->number, memory_order_acquire);
	if (*ret_there != number)
		return false;
	for (size_t i = 0; i < TRACE_EVENT_WORDS; i++)
		as.word[i] = atomic_load_explicit(&p->word[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	*ret_there = atomic_load_explicit(&p->number, memory_order_relaxed);
	if (*ret_there != number)
		return false;
	*ret = as.event;
	return true;
}
