/*
 * What a traced process records (library/trace/trace.h): a ring of events and a list of names, in a memory file that the
 * daemon makes for the process, sealed against shrinking and growing. The process writes it; `allot trace` has it from
 * the daemon and reads it, and believes nothing in it.
 *
 * Whoever records an event takes the next number and writes at that number's place, over what was there: a reader that
 * is too slow loses the oldest, and sees by the numbers how many. `number` of a place is written last, and is 0
 * while the rest changes; so an event that was read while the number stayed the same is whole.
 *
 * A process asks for its ring by an exchange on the tenant's socket, as in registration.h, once the control page says
 * that it is traced:
 *
 *   process -> daemon   struct trace_request
 *   daemon -> process   struct trace_reply; when status is 0, with the file's descriptor
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/trace_clock.h"

#define TRACE_MAGIC 0x746c6c61U /* "allt" */
#define TRACE_VERSION 1U
#define TRACE_EVENTS 65536U /* a power of two; at 400,000 launches a second, those of 0.16 s */
#define TRACE_STEP \
	64U /* so often it is told of how many there are: that is one store less for nearly all */
#define TRACE_NAMES 4096U
#define TRACE_NAME_MAX 232 /* bytes of a name, the final NUL included */

/* region_control.trace: the clock in the low 8 bits, TRACE_NO_CLOCK while nobody traces; above them a counter. */
#define TRACE_CLOCK_MASK 0xffU
#define TRACE_ORDER_STEP 0x100U

static inline enum trace_clock trace_clock_of(uint32_t order)
{
	return (enum trace_clock)(order & TRACE_CLOCK_MASK);
}

/* What happened, and what the fields say of it beside device, thread and time. */
enum trace_kind {
	/*
	 * Work handed to the driver: subject: the function, the executable graph, or the entry point (a name's key);
	 * object: stream; amount: blocks, or bytes of a copy; extra: threads of a block; code: the driver's answer.
	 */
	TRACE_KERNEL = 1,
	TRACE_GRAPH,
	TRACE_COPY, /* copies and memsets that return at once */
	TRACE_SYNC, /* the like that is done when the call returns */
	/* A thread was held: amount: TRACE_WAIT_ flags, of all that it waited for */
	TRACE_GATE_WAIT,
	/* Memory: subject: address or handle, amount: bytes, 0: not known. DENIED: what was asked for. */
	TRACE_ALLOC,
	TRACE_FREE,
	TRACE_DENIED,
	TRACE_USED, /* amount: what the process's ledger has on the device from here on */
	TRACE_MEMORY_WAIT, /* an allocation waited for a grant or for room: amount: bytes, code: 0: it got them */
	TRACE_AWAY_WAIT, /* a call waited for memory that was not on the card */
	TRACE_SWAP_OUT,  /* amount: bytes; code: 0: moved */
	TRACE_SWAP_IN,
	TRACE_KINDS
};

enum trace_wait {
	TRACE_WAIT_LEASE = 1, /* another tenant had the card */
	TRACE_WAIT_TURN = 2,  /* another process of the tenant */
	TRACE_WAIT_DEPTH = 4, /* enough of its own work was in flight */
	TRACE_WAIT_GRANT = 8, /* paced, and its grant was used up */
	TRACE_WAIT_CAP = 16,  /* the daemon was gone, and its cap reached */
};

#define TRACE_LEASED 1U     /* flags of work: it was handed over under a lease */
#define TRACE_PER_THREAD 2U /* ... into the thread's own default stream */

struct trace_event {
	uint64_t begin,
		end; /* ticks; the same: a moment, or of a kernel that nobody looked how long handing it over took */
	uint32_t thread; /* gettid() */
	uint8_t kind;    /* enum trace_kind */
	uint8_t device;  /* index in the tenant's list; REGION_HOST: page-locked memory */
	uint16_t code;
	uint64_t subject, object, amount;
	uint32_t extra, flags;
};

#define TRACE_EVENT_WORDS (sizeof(struct trace_event) / sizeof(uint64_t))

struct trace_place {
	_Alignas(64) _Atomic uint64_t number; /* from 1; 0: being written, or never */
	_Atomic uint64_t word[TRACE_EVENT_WORDS];
};

/* What a key, or a thread, is called from a moment on. */
enum trace_name_kind { TRACE_NAMES_FUNCTION = 1, TRACE_NAMES_ENTRY, TRACE_NAMES_THREAD };

struct trace_name {
	_Atomic uint32_t is_written;
	uint32_t kind;  /* enum trace_name_kind */
	uint64_t key;   /* as in subject, or thread */
	uint64_t since; /* ticks */
	char text[TRACE_NAME_MAX];
};

struct trace_ring {
	uint32_t magic;
	uint32_t version;
	uint32_t size_bytes;                      /* sizeof(struct trace_ring) */
	uint32_t clock;                           /* enum trace_clock */
	_Alignas(64) _Atomic uint64_t next;       /* events so far, or up to TRACE_STEP less */
	_Alignas(64) _Atomic uint32_t name_count; /* so far; those beyond TRACE_NAMES have no place */
	struct trace_place place[TRACE_EVENTS];
	struct trace_name name[TRACE_NAMES];
};

struct trace_request {
	uint32_t magic;
	uint32_t version;
	uint32_t order; /* of the control page, which it answers */
	uint32_t reserved;
};

struct trace_reply {
	uint32_t magic;
	uint32_t version;
	int32_t status; /* 0, or a positive errno: ENOENT: that trace is over */
	uint32_t reserved;
};

_Static_assert(sizeof(struct trace_event) == 56 && sizeof(struct trace_place) == 64, "a line");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as trace_ring_write() packs an event");
_Static_assert(sizeof(struct trace_name) == 256, "name layout");
_Static_assert((TRACE_EVENTS & (TRACE_EVENTS - 1)) == 0, "a power of two");

static inline bool trace_ring_is_valid(const struct trace_ring *ring)
{
	return ring->magic == TRACE_MAGIC && ring->version == TRACE_VERSION &&
	       ring->size_bytes == sizeof(*ring);
}

/* Fetches a line that is about to be written over. */
static inline void trace_prefetch(const void *line)
{
#if defined(__x86_64__)
	/* The compiler's is a load's, unless it is told of newer processors; older ones take this for nothing. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/*
 * Writes the event of a number that was taken. Word by word from where its fields are, which is in registers where it is
 * inlined: an event that is put together in memory by its bytes and read back by words waits for the stores.
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

	/* A reader on another processor has had the line: it is fetched while the driver works. */
	trace_prefetch(&ring->place[(number + 1) % TRACE_EVENTS]);
	atomic_store_explicit(&p->number, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
#pragma GCC unroll 7
	for (size_t i = 0; i < TRACE_EVENT_WORDS; i++)
		atomic_store_explicit(&p->word[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&p->number, number, memory_order_release);
}

/* Event `number` as it is at its place. False: it is not there, or not whole; *ret_there is the number that is. */
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
