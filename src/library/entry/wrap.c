/* Exports a function for each row of driver_table.h. It returns an error if the driver is not loaded, or lacks the function. */
#include "library/entry/hooks.h"
#include "library/launch/fast_path_pass.h"
#include "library/launch/gate.h"
#include "library/launch/sync_point.h"
#include "library/loader/real.h"

/* For WORK_READS(): without a context the driver refuses all work and reads no pointers, so the library must read none. */
static bool has_context(void)
{
	return process_current_index() >= 0;
}

static __attribute__((noinline, cold)) CUresult absent(void)
{
	return real_find_driver() ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_NO_DEVICE;
}

/* The first call of each function is a separate function, so that later calls need no stack frame. */
#define WRAP_HOOK(symbol, hook, params, args) \
	static __attribute__((noinline, cold)) CUresult first_##symbol params \
	{ \
		return real_find_driver() && real.symbol ? hook_##hook(real.symbol, UNWRAP args) \
							 : absent(); \
	} \
	ALLOT_EXPORT CUresult symbol params; \
	ALLOT_EXPORT CUresult symbol params \
	{ \
		return likely(real.symbol) ? hook_##hook(real.symbol, UNWRAP args) \
					   : first_##symbol args; \
	}

#define GATED_BODY(symbol, meaning, args, ...) \
	{ \
		if (unlikely(!real.symbol) && !(real_find_driver() && real.symbol)) \
			return absent(); \
		bool (*const work_reads)(void) = has_context; \
		struct work work = __VA_ARGS__; \
		struct gate_pass pass; \
		CUresult result; \
		(void)work_reads; \
		work.streams = meaning; \
		gate_enter(&pass, &work); \
		result = likely(!pass.is_refused) ? real.symbol args : CUDA_ERROR_OUT_OF_MEMORY; \
		gate_leave(&pass, &work, result); \
		return result; \
	}

#define WRAP_WORK(symbol, meaning, params, args, ...) \
	ALLOT_EXPORT CUresult symbol params; \
	ALLOT_EXPORT CUresult symbol params GATED_BODY(symbol, meaning, args, __VA_ARGS__)

/*
 * A launch takes the fast path (fast_path.h) if that is open. A separate function calls the gate, so that the fast path is
 * short, straight code. The empty assembly keeps the call of that function from becoming a tail call, for which the compiler
 * would first move all arguments.
 */
#define WRAP_LAUNCH(symbol, meaning, params, args, ...) \
	static __attribute__((noinline)) CUresult gated_##symbol params GATED_BODY( \
		symbol, meaning, args, __VA_ARGS__) \
	ALLOT_EXPORT CUresult symbol params; \
	ALLOT_EXPORT __attribute__((hot, aligned(64))) CUresult symbol params \
	{ \
		bool (*const work_reads)(void) = fast_path_is_open; \
		struct work work = __VA_ARGS__; \
		(void)work_reads; \
		work.streams = meaning; \
		bool is_own_threads = work.streams == PER_THREAD && !work.stream; \
		struct inflight_stream *s = fast_path_pass(is_own_threads ? CU_STREAM_PER_THREAD \
									  : work.stream); \
		CUresult result; \
		if (unlikely(!s) || unlikely(!fast_path.real.symbol)) { \
			result = gated_##symbol args; \
			__asm__ volatile(""); \
			return result; \
		} \
		result = fast_path.real.symbol args; \
		return fast_path_leave(s, result); \
	}

#define WRAP_WAIT(symbol, meaning, params, args, after) \
	ALLOT_EXPORT CUresult symbol params; \
	ALLOT_EXPORT CUresult symbol params \
	{ \
		if (unlikely(!real.symbol) && !(real_find_driver() && real.symbol)) \
			return absent(); \
		sync_point_before(); \
		CUresult result = real.symbol args; \
		if (result == CUDA_SUCCESS) \
			after; \
		return result; \
	}

DRIVER_TABLE_HOOKS(WRAP_HOOK)
DRIVER_TABLE_LAUNCH(WRAP_LAUNCH)
DRIVER_TABLE_COPY(WRAP_WORK)
DRIVER_TABLE_SET(WRAP_WORK)
DRIVER_TABLE_BATCH(WRAP_WORK)
DRIVER_TABLE_OLD_WORK(WRAP_WORK)
DRIVER_TABLE_WAIT(WRAP_WAIT)
