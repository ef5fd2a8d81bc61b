#include "interpose/trace_launch.h"

#include "interpose/flight.h"
#include "interpose/trace_record.h"
#include "interpose/trace_work.h"

/* The record is the one by which the launch passed the door: that of its stream's hash. */
#define DEFINE(symbol, meaning, params, args, ...) \
	static __attribute__((hot, aligned(64))) CUresult record_##symbol params \
	{ \
		struct work work = __VA_ARGS__; \
		int device = flight_place(flight_hash(work.stream, 0))->device; \
		bool is_named = trace_is_named(&work); \
		uint64_t begin = trace_now(); \
		CUresult result = real.symbol args; \
		trace_kernel(&work, device, is_named, begin, result); \
		return result; \
	}
DRIVER_TABLE_LAUNCH(DEFINE)

#define SLOT(symbol, meaning, params, args, ...) .symbol = record_##symbol,
const struct trace_launch trace_launch = { DRIVER_TABLE_LAUNCH(SLOT) };
