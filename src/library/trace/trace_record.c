#include "library/trace/trace_record.h"

#include <string.h>
#include <sys/prctl.h>

#define THREAD_NAME_MAX 16 /* prctl(2) */

struct trace_sink trace_sink;

__thread struct trace_thread trace_thread;

void trace_sink_begin(struct trace_ring *ring, enum trace_clock clock)
{
	enum biased_hold hold = biased_visit(&trace_sink.numbering);

	atomic_store(&trace_sink.clock, (uint32_t)clock);
	atomic_fetch_add(&trace_sink.generation, 1);
	atomic_store(&trace_sink.owner_id, 0);
	atomic_store(&trace_sink.next, 0);
	atomic_store(&trace_sink.ring, ring);
	biased_leave(&trace_sink.numbering, hold);
}

void trace_put_name(enum trace_name_kind kind, uint64_t key, uint64_t since, const char *text)
{
	struct trace_ring *ring = atomic_load_explicit(&trace_sink.ring, memory_order_acquire);
	size_t length = strnlen(text, TRACE_NAME_MAX - 1);

	/* Check first, so that name_count does not overflow. */
	if (!ring || atomic_load_explicit(&ring->name_count, memory_order_relaxed) >= TRACE_NAMES)
		return;
	uint32_t at = atomic_fetch_add_explicit(&ring->name_count, 1, memory_order_relaxed);
	if (at >= TRACE_NAMES)
		return;
	struct trace_name *n = &ring->name[at];
	n->kind = (uint32_t)kind;
	n->key = key;
	n->since = since;
	memcpy(n->text, text, length);
	n->text[length] = '\0';
	atomic_store_explicit(&n->is_written, 1, memory_order_release);
}

/* gettid() is a system call, so it is called once per thread and trace. A forked child has another id, and calls it again. */
__attribute__((noinline, cold)) void trace_record_thread_name(uint32_t generation)
{
	char name[THREAD_NAME_MAX + 1] = "";

	trace_thread.id = (uint32_t)syscall(SYS_gettid);
	trace_thread.generation = generation;
	prctl(PR_GET_NAME, name, 0, 0, 0);
	trace_put_name(TRACE_NAMES_THREAD, trace_thread.id, 0, name);
}

void trace_memory_now(enum trace_kind kind, int device, uint64_t subject, uint64_t bytes)
{
	uint64_t now = trace_now();

	if (device >= 0)
		trace_put((struct trace_event){ .begin = now,
						.end = now,
						.kind = (uint8_t)kind,
						.device = (uint8_t)device,
						.subject = subject,
						.amount = bytes },
			  false);
}

void trace_wait(enum trace_kind kind, int device, uint64_t begin, uint64_t amount, uint16_t code)
{
	if (begin)
		trace_put((struct trace_event){ .begin = begin,
						.end = trace_now(),
						.kind = (uint8_t)kind,
						.device = (uint8_t)device,
						.code = code,
						.amount = amount },
			  false);
}
