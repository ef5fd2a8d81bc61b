#include "library/launch/trace_launch.h"

#include "library/launch/inflight/inflight_record.h"
#include "library/launch/trace_work.h"
#include "library/loader/fast_path.h"

/*
 * True for about one launch in eight, chosen by bits of its begin. Only such a launch's end is timed: reading the counter takes
 * 14 ns, and longer right after the driver has written to the GPU.
 */
#define IS_TIMED(begin) (!((begin)&0x70))

#define DEFINE(symbol, meaning, params, args, ...) \
	static __attribute__((hot, aligned(64))) CUresult record_##symbol params \
	{ \
		bool (*const work_reads)(void) = fast_path_is_open; \
		struct work work = __VA_ARGS__; \
		(void)work_reads; \
		uintptr_t key = inflight_fast_path_key(work.stream); \
		int device = inflight_fast_path_place(key)->device; \
		uint64_t begin = trace_ticks(TRACE_COUNTER); \
		CUresult result = real.symbol args; \
		uint64_t end = unlikely(IS_TIMED(begin)) ? trace_ticks(TRACE_COUNTER) : begin; \
		if (unlikely(!trace_kernel_quickly(&work, device, begin, end, result))) \
			trace_kernel(&work, device, begin, end, result); \
		return result; \
	}
DRIVER_TABLE_LAUNCH(DEFINE)

#define SLOT(symbol, meaning, params, args, ...) .symbol = record_##symbol,
const struct trace_launch trace_launch = { DRIVER_TABLE_LAUNCH(SLOT) };
