/*
 * The exported driver functions, one for each row of driver_table.h: nothing here but what the rows
 * say. A function that is called before the driver is loaded, or that this driver lacks, answers so.
 */
#include "interpose/ahead.h"
#include "interpose/door.h"
#include "interpose/gate.h"
#include "interpose/hooks.h"
#include "interpose/real.h"

#define UNWRAP(...) __VA_ARGS__

/* Without a context the driver refuses all work. */
static bool has_context(void)
{
	return guest_current_index() >= 0;
}

static __attribute__((noinline, cold)) CUresult absent(void)
{
	return real_find_driver() ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_NO_DEVICE;
}

/*
 * A call that waits for what is queued ahead of it (ahead.h). The first call apart, so that all others need
 * no frame for it.
 */
#define WRAP_HOOK(symbol, hook, params, args) \
	static __attribute__((noinline, cold)) CUresult first_##symbol params \
	{ \
		CUresult kept = ahead_flush(#symbol); \
		if (kept != CUDA_SUCCESS) \
			return kept; \
		return real_find_driver() && real.symbol ? hook_##hook(real.symbol, UNWRAP args) \
							 : absent(); \
	} \
	ALLOT_EXPORT CUresult symbol params; \
	ALLOT_EXPORT CUresult symbol params \
	{ \
		if (unlikely(!real.symbol) || ahead_is_pending()) \
			return first_##symbol args; \
		return hook_##hook(real.symbol, UNWRAP args); \
	}

/* One that needs not wait: it answers, and looks at no work and no memory that work uses. */
#define WRAP_QUIET(symbol, hook, params, args) \
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
		if (ahead_is_pending() && (QUEUE(symbol) || (result = ahead_settle(#symbol)))) \
			return result; \
		if (MAY_QUEUE(symbol) && gate_holds(&pass, &work) && QUEUE(symbol)) \
			return result; \
		if (!MAY_QUEUE(symbol) || pass.would_wait) \
			gate_enter(&pass, &work); \
		result = likely(!pass.is_refused) ? real.symbol args : CUDA_ERROR_OUT_OF_MEMORY; \
		gate_leave(&pass, &work, result); \
		if (MAY_QUEUE(symbol) && pass.device && pass.is_raised && \
		    gate_lets_queue(&pass) && !result) \
			PROVE(symbol); \
		return result; \
	}

/*
 * What may be queued, and how: true, when that is all of the call. Of a symbol that has no line here, the
 * second of these is taken.
 */
#define SECOND_OF(first, second, ...) second
#define SECOND(...) SECOND_OF(__VA_ARGS__)
#define QUEUE(symbol) SECOND(QUEUE_##symbol, false, 0)
#define MAY_QUEUE(symbol) SECOND(MAY_QUEUE_##symbol, false, 0)
#define PROVE(symbol) SECOND(PROVE_##symbol, (void)0, 0)

#define KERNEL \
	&(const struct ahead_kernel) \
	{ \
		.function = f, .grid = { gx, gy, gz }, .block = { bx, by, bz }, \
		.shared_bytes = shared_bytes, .stream = stream, .params = params, .extra = extra \
	}
#define CONFIGURED_KERNEL \
	&(const struct ahead_kernel) \
	{ \
		.function = f, .grid = { config->gridDimX, config->gridDimY, config->gridDimZ }, \
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ }, \
		.shared_bytes = config->sharedMemBytes, .stream = config->hStream, \
		.params = params, .extra = extra, .config = config \
	}
#define QUEUE_KERNEL ~, ahead_launch(&work, KERNEL, &result)
#define PROVE_KERNEL ~, ahead_prove_launch(&work, KERNEL)
#define QUEUE_CONFIGURED ~, (WORK_READS(config) && ahead_launch(&work, CONFIGURED_KERNEL, &result))
#define PROVE_CONFIGURED ~, ahead_prove_launch(&work, CONFIGURED_KERNEL)
#define PROVE_STREAM ~, ahead_prove_stream(&work)
#define YES ~, true

#define MAY_QUEUE_cuLaunchKernel YES
#define MAY_QUEUE_cuLaunchKernel_ptsz YES
#define MAY_QUEUE_cuLaunchKernelEx YES
#define MAY_QUEUE_cuLaunchKernelEx_ptsz YES
#define MAY_QUEUE_cuMemsetD8Async YES
#define MAY_QUEUE_cuMemsetD8Async_ptsz YES
#define MAY_QUEUE_cuMemsetD16Async YES
#define MAY_QUEUE_cuMemsetD16Async_ptsz YES
#define MAY_QUEUE_cuMemsetD32Async YES
#define MAY_QUEUE_cuMemsetD32Async_ptsz YES
#define MAY_QUEUE_cuMemcpyDtoDAsync_v2 YES
#define MAY_QUEUE_cuMemcpyDtoDAsync_v2_ptsz YES
#define QUEUE_cuLaunchKernel QUEUE_KERNEL
#define QUEUE_cuLaunchKernel_ptsz QUEUE_KERNEL
#define QUEUE_cuLaunchKernelEx QUEUE_CONFIGURED
#define QUEUE_cuLaunchKernelEx_ptsz QUEUE_CONFIGURED
#define QUEUE_cuMemsetD8Async ~, ahead_set(&work, dst, value, 1, n, &result)
#define QUEUE_cuMemsetD8Async_ptsz QUEUE_cuMemsetD8Async
#define QUEUE_cuMemsetD16Async ~, ahead_set(&work, dst, value, 2, n, &result)
#define QUEUE_cuMemsetD16Async_ptsz QUEUE_cuMemsetD16Async
#define QUEUE_cuMemsetD32Async ~, ahead_set(&work, dst, value, 4, n, &result)
#define QUEUE_cuMemsetD32Async_ptsz QUEUE_cuMemsetD32Async
#define QUEUE_cuMemcpyDtoDAsync_v2 ~, ahead_copy(&work, dst, src, bytes, &result)
#define QUEUE_cuMemcpyDtoDAsync_v2_ptsz QUEUE_cuMemcpyDtoDAsync_v2
#define PROVE_cuLaunchKernel PROVE_KERNEL
#define PROVE_cuLaunchKernel_ptsz PROVE_KERNEL
#define PROVE_cuLaunchKernelEx PROVE_CONFIGURED
#define PROVE_cuLaunchKernelEx_ptsz PROVE_CONFIGURED
#define PROVE_cuMemsetD8Async PROVE_STREAM
#define PROVE_cuMemsetD8Async_ptsz PROVE_STREAM
#define PROVE_cuMemsetD16Async PROVE_STREAM
#define PROVE_cuMemsetD16Async_ptsz PROVE_STREAM
#define PROVE_cuMemsetD32Async PROVE_STREAM
#define PROVE_cuMemsetD32Async_ptsz PROVE_STREAM
#define PROVE_cuMemcpyDtoDAsync_v2 PROVE_STREAM
#define PROVE_cuMemcpyDtoDAsync_v2_ptsz PROVE_STREAM

#define WRAP_WORK(symbol, meaning, params, args, ...) \
	ALLOT_EXPORT CUresult symbol params; \
	ALLOT_EXPORT CUresult symbol params GATED_BODY(symbol, meaning, args, __VA_ARGS__)

/*
 * A launch: through the door where it is open. The gate apart, so that the way through the door is short,
 * straight and in adjacent lines. It is no tail call, as the compiler then moves all arguments at once.
 */
#define WRAP_LAUNCH(symbol, meaning, params, args, ...) \
	static __attribute__((noinline)) CUresult gated_##symbol params GATED_BODY( \
		symbol, meaning, args, __VA_ARGS__) \
	ALLOT_EXPORT CUresult symbol params; \
	ALLOT_EXPORT __attribute__((hot, aligned(64))) CUresult symbol params \
	{ \
		bool (*const work_reads)(void) = door_is_open; \
		struct work work = __VA_ARGS__; \
		(void)work_reads; \
		bool is_own_threads = work.streams == PER_THREAD && !work.stream; \
		struct flight_stream *s = door_pass(is_own_threads ? CU_STREAM_PER_THREAD \
								   : work.stream); \
		CUresult result; \
		if (unlikely(!s) || unlikely(!door.real.symbol)) { \
			result = gated_##symbol args; \
			__asm__ volatile(""); \
			return result; \
		} \
		result = door.real.symbol args; \
		return door_leave(s, result); \
	}

DRIVER_TABLE_QUIET(WRAP_QUIET)
DRIVER_TABLE_WAITING(WRAP_HOOK)
DRIVER_TABLE_LAUNCH(WRAP_LAUNCH)
DRIVER_TABLE_COPY(WRAP_WORK)
DRIVER_TABLE_SET(WRAP_WORK)
DRIVER_TABLE_BATCH(WRAP_WORK)
DRIVER_TABLE_OLD_WORK(WRAP_WORK)
