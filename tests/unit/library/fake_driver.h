/*
 * A driver of function pointers: fills `real` with functions whose work ends when the test says so.
 * Device 0 is the tenant's only one. Thread safe.
 */
#pragma once

#include "library/launch/inflight/work.h"
#include "library/loader/real.h"

#define FAKE_CONTEXT ((CUcontext)0xc0)
#define FAKE_STREAMS 2048

/* Stream i; 0 and 1 stand for the legacy and the per-thread default stream. */
CUstream fake_stream(unsigned i);

/* Fills `real`, and forgets all streams, counts and settings of earlier tests. */
void fake_driver_start(void);

/* Sets the calling thread's current context (NULL: none), as cuCtxSetCurrent. At first it is FAKE_CONTEXT. */
CUresult fake_set_current(CUcontext context);

/* The effect of the driver's launch: one more unit of work on the stream. */
CUresult fake_launch(CUstream stream);

/* Returns how many pieces of work were launched on the stream. fake_complete() sets how many of them are done. */
uint64_t fake_launched(CUstream stream);
void fake_complete(CUstream stream, uint64_t count);
void fake_complete_all(void);

/* Sets whether the stream is being captured. Events that are recorded into it meanwhile count in records_in_capture. */
void fake_set_capturing(CUstream stream, bool is_capturing);

struct fake_counts {
	uint64_t records, queries, creates, destroys;
	uint64_t records_in_capture; /* must stay 0 */
	uint64_t queries_after_destroy;
};
struct fake_counts fake_counts(void);

/* The time that cuEventElapsedTime returns, for any two events. */
extern _Atomic uint64_t fake_elapsed_us;
/* While true, cuEventRecord fails. */
extern _Atomic bool fake_record_fails;

/* An ordinary kernel for a stream. */
struct work fake_kernel(CUstream stream, const void *function);
