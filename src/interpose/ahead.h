/*
 * Launch-ahead: launches that the gate would hold are queued here, and the program goes on.
 *
 * A thread that is held at the gate can't run ahead of the GPU, so each turn of its tenant would begin with
 * an empty GPU, and phases in which a program computes longer than the GPU would never be made up for. So
 * a launch that would be held is copied, with its parameters, and the call returns CUDA_SUCCESS, as an
 * asynchronous call does. One thread of ours per process (the feeder) hands what is queued to the driver, in
 * order, through the gate (gate.h) as any launching thread would pass it: leases, depth, marks, demand and
 * patience are the gate's, and what is in the driver is bounded as before. When all has been handed over,
 * launches are direct again. In free run nothing is ever queued.
 *
 *     program -- launch --> | queue of this process, one FIFO | -- feeder --> gate --> driver
 *             -- any other call: waits until the queue has been handed over, then goes on
 *
 * What is queued: kernels (not cooperative ones) of a function, shape and stream that have succeeded
 * before in that context, memsets and copies within device memory that the driver knows, and, by the way, records
 * of events, waits for them, and their ends. Never: while a capture is under way; into a per-thread stream. What
 * else a program calls comes first by ahead_flush() (hooks), or by a thunk (thunk.h), unless it is quiet
 * (driver_quiet.h). So nobody sees that a launch is late, but:
 *   - an error of a launch that had succeeded before, with that function and shape, is returned by the next
 *     call that waits for the queue, as errors of the GPU's are; then nothing more is queued in this process;
 *   - tools see launches made by another thread.
 *
 * It switches itself off where order can't be kept: when the program got a function of the driver's past us
 * that is neither known nor quiet, when the process works on a second device, with a driver newer than our tables, with CUDA_LAUNCH_BLOCKING, and
 * with ALLOT_LAUNCH_AHEAD=0. Events are not queued once other processes can know one.
 *
 * A wait for the queue is the gate's wait of the feeder: it ends when those end. No more is queued than the
 * driver takes without blocking (AHEAD_IN_FLIGHT), so that the feeder never hangs in it.
 *
 * Thread safe. In a forked child nothing is queued, whatever was in the parent.
 */
#ifndef ALLOT_INTERPOSE_AHEAD_H
#define ALLOT_INTERPOSE_AHEAD_H

#include "interpose/guest.h"
#include "interpose/work.h"

/*
 * Launches queued here and in flight, in sum: the driver's own queue takes about 1,024, and of those that were
 * begun in free run up to 256 of a stream are not counted.
 */
#define AHEAD_IN_FLIGHT 768
#define AHEAD_BYTES (4U << 20)

/* True while calls must go by ahead_settle(): something is queued, or an error is still to be told. */
static inline bool ahead_is_pending(void)
{
	return unlikely(atomic_load_explicit(&guest.ahead, memory_order_acquire));
}

/*
 * Waits until all that was queued before this call has been handed over. Returns a kept error, once.
 * who: the function that waits, a literal; for the log alone.
 */
CUresult ahead_settle(const char *who);

static inline CUresult ahead_flush(const char *who)
{
	return ahead_is_pending() ? ahead_settle(who) : CUDA_SUCCESS;
}

/* A kernel's launch, as the two calls that there are describe it. */
struct ahead_kernel {
	CUfunction function;
	unsigned int grid[3], block[3], shared_bytes;
	CUstream stream;
	void **params, **extra;
	const CUlaunchConfig *config; /* of cuLaunchKernelEx; else NULL */
};

/*
 * Before a launch takes the gate. True: it needs not go on, *ret_result is what the call returns (queued, or
 * a kept error). False: nothing is queued any more, and the launch goes by the gate.
 */
bool ahead_launch(const struct work *work, const struct ahead_kernel *kernel, CUresult *ret_result);

/* The same of a memset (count elements of so many bytes), and of a copy within device memory. */
bool ahead_set(const struct work *work, CUdeviceptr dst, uint32_t value, unsigned int element_bytes,
	       size_t count, CUresult *ret_result);
bool ahead_copy(const struct work *work, CUdeviceptr dst, CUdeviceptr src, size_t bytes,
		CUresult *ret_result);

/* A launch has succeeded by the gate: the same may be queued the next time. */
void ahead_prove_launch(const struct work *work, const struct ahead_kernel *kernel);
void ahead_prove_stream(const struct work *work);

/*
 * A passed function's thunk asks. True: the call ends, with *ret_result; false: it goes on, and nothing is
 * queued any more (or that does not matter to it).
 */
bool ahead_meet(uint32_t thunk, const uintptr_t argument[6], CUresult *ret_result);

/* The program gets a function of the driver's own that is neither governed nor known to be quiet. */
void ahead_bypassed(const char *name);

/* At exit, before the driver goes: waits for the queue, for a moment, and stops the feeder. */
void ahead_leave(void);

/* In a forked child. */
void ahead_reset(void);

#endif
