#include "library/launch/trace_work.h"

#include "library/loader/real.h"
#include "library/sys/locks.h"
#include "library/trace/trace_record.h"

static _Atomic uint64_t *seen_place(uint64_t key, uint64_t i)
{
	return &trace_sink.seen[(trace_seen_at(key) + i) % (1 << TRACE_SEEN_BITS)];
}

/* Returns the place that has the key, or its first free place. NULL if other keys fill all its places. */
static _Atomic uint64_t *find_place(uint64_t key)
{
	for (uint64_t i = 0; i < TRACE_SEEN_PLACES; i++) {
		uint64_t other = atomic_load_explicit(seen_place(key, i), memory_order_relaxed);
		if (!other || other == key)
			return seen_place(key, i);
	}
	return NULL;
}

/* `function` may also be a library's kernel (CUkernel). NULL if this driver does not tell the name. */
static const char *name_of_function(const void *function)
{
	const char *name = NULL;

	if (real.cuFuncGetName &&
	    real.cuFuncGetName(&name, (CUfunction)(uintptr_t)function) == CUDA_SUCCESS)
		return name;
	if (real.cuKernelGetName &&
	    real.cuKernelGetName(&name, (CUkernel)(uintptr_t)function) == CUDA_SUCCESS)
		return name;
	return NULL;
}

/* Call before the work's trace event is written, so that a reader of the trace finds the name. */
static __attribute__((noinline, cold)) void record_name(const struct work *work, uint64_t since)
{
	uint64_t key = (uint64_t)(uintptr_t)work->subject, when = trace_seen_now();
	bool is_kernel = work->kind == WORK_IS_KERNEL;
	/* For other work, the subject is the driver call's name, a string constant. */
	const char *name = is_kernel ? name_of_function(work->subject) : work->subject;

	WITH_LOCK(&locks.trace_seen);
	if (atomic_load_explicit(&trace_sink.seen_when, memory_order_relaxed) != when) {
		for (size_t i = 0; i < 1 << TRACE_SEEN_BITS; i++)
			atomic_store_explicit(&trace_sink.seen[i], 0, memory_order_relaxed);
		atomic_store_explicit(&trace_sink.seen_when, when, memory_order_release);
	}
	_Atomic uint64_t *place = find_place(key);
	if (!place || atomic_load_explicit(place, memory_order_relaxed))
		return;
	atomic_store_explicit(place, key, memory_order_relaxed);
	if (name)
		trace_put_name(is_kernel ? TRACE_NAMES_FUNCTION : TRACE_NAMES_ENTRY, key, since,
			       name);
}

/* True if this trace has the name of the work's subject, or has no room for it. */
static bool is_named(const struct work *work)
{
	if (atomic_load_explicit(&trace_sink.seen_when, memory_order_acquire) != trace_seen_now())
		return false;
	_Atomic uint64_t *place = find_place((uint64_t)(uintptr_t)work->subject);
	return !place || atomic_load_explicit(place, memory_order_relaxed);
}

static inline struct trace_event event_of(const struct work *work, enum trace_kind kind, int device,
					  uint64_t begin, uint64_t end, CUresult result)
{
	return (struct trace_event){
		.begin = begin,
		.end = end,
		.kind = (uint8_t)kind,
		.device = (uint8_t)device,
		.code = (uint16_t)result,
		.subject = (uint64_t)(uintptr_t)work->subject,
		.object = (uint64_t)(uintptr_t)work->stream,
		.amount = work->blocks,
		.extra = (uint32_t)work->threads,
	};
}

void trace_work(const struct work *work, int device, uint64_t begin, bool is_leased, CUresult result)
{
	static const uint8_t kinds[] = {
		[WORK_IS_KERNEL] = TRACE_KERNEL,
		[WORK_IS_GRAPH] = TRACE_GRAPH,
		[WORK_IS_COPY] = TRACE_COPY,
		[WORK_IS_SYNC] = TRACE_SYNC,
	};
	struct trace_event event = event_of(work, kinds[work->kind], device, begin, trace_now(),
					    result);

	event.flags = (is_leased ? TRACE_LEASED : 0) |
		      (work->streams == PER_THREAD && !work->stream ? TRACE_PER_THREAD : 0);
	if (work->kind != WORK_IS_GRAPH && result == CUDA_SUCCESS && !is_named(work))
		record_name(work, begin);
	trace_put(event, false);
}

__attribute__((noinline, cold)) void trace_kernel(const struct work *work, int device,
						  uint64_t begin, uint64_t end, CUresult result)
{
	if (result == CUDA_SUCCESS && !is_named(work))
		record_name(work, begin);
	trace_put(event_of(work, TRACE_KERNEL, device, begin, end, result), false);
}
