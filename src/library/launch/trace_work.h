/*
 * Writes trace records of GPU work. The launching thread looks up a new function's name at once, because the function may be
 * unloaded later.
 */
#pragma once

#include <stdbool.h>

#include "library/launch/inflight/work.h"
#include "library/trace/trace_record.h"

/* Records work that began at `begin` (ticks), and was handed to the driver or refused. */
void trace_work(const struct work *work, int device, uint64_t begin, bool is_leased,
		CUresult result);

/* Records a kernel that took the fast path, and whose launch ended at `end`. */
void trace_kernel(const struct work *work, int device, uint64_t begin, uint64_t end,
		  CUresult result);

/* Places in trace_sink.seen where a key may be. If other keys have them all, the trace does not name the function. */
#define TRACE_SEEN_PLACES 8

static inline uint64_t trace_seen_at(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15ULL >> (64 - TRACE_SEEN_BITS);
}

/*
 * Records a kernel under two conditions, which nearly always hold. The kernel's key is at trace_seen_at() in trace_sink.seen,
 * so the trace has its name. The calling thread owns trace_sink.numbering. Otherwise returns false. Each cache line of code and
 * data matters here (fast_path.h).
 */
static inline __attribute__((always_inline)) bool trace_kernel_quickly(const struct work *work,
								       int device, uint64_t begin,
								       uint64_t end, CUresult result)
{
	uint64_t key = (uint64_t)(uintptr_t)work->subject;
	struct trace_sink *sink = &trace_sink;

	/* Keeps the compiler from writing each field's address into the code. */
	__asm__("" : "+r"(sink));
	if (unlikely(atomic_load_explicit(&sink->seen[trace_seen_at(key)], memory_order_relaxed) !=
			     key ||
		     !biased_enter_own(&sink->numbering)))
		return false;
	struct trace_ring *ring = atomic_load_explicit(&sink->ring, memory_order_relaxed);
	uint32_t id = atomic_load_explicit(&sink->owner_id, memory_order_relaxed);
	/* A new thread may have the thread pointer of an ended owner, and so enter as the owner. But the ids differ. */
	if (unlikely(!id || trace_thread.id != id)) {
		biased_leave(&sink->numbering, BIASED_OWN);
		return false;
	}
	uint64_t number = biased_add_wide(BIASED_OWN, &sink->next, 1) + 1;
	biased_leave(&sink->numbering, BIASED_OWN);
	if (unlikely(number % TRACE_STEP == 0))
		atomic_store_explicit(&ring->next, number, memory_order_relaxed);
	trace_ring_write(ring, number,
			 &(struct trace_event){
				 .begin = begin,
				 .end = end,
				 .thread = id,
				 .kind = TRACE_KERNEL,
				 .device = (uint8_t)device,
				 .code = (uint16_t)result,
				 .subject = key,
				 .object = (uint64_t)(uintptr_t)work->stream,
				 .amount = work->blocks,
				 .extra = (uint32_t)work->threads,
			 });
	return true;
}
