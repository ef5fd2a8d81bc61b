/*
 * The stream captures of this process. A capture lasts from the call that begins it to cuStreamEndCapture, or to the end of
 * its stream or context. While there is one (process_state.captures), the library records nothing in any stream (inflight.h),
 * and memory stays on the GPU (swap.h). Thread safe.
 */
#pragma once

#include "abi/cuda_abi.h"

/* Before and after the driver's call that begins one; returns its result. */
void captures_begin(void);
CUresult captures_began(CUstream stream, CUresult result);
/* After cuStreamEndCapture, whatever its result. */
void captures_end_called(CUstream stream, CUresult result);
/* The stream, or the context, has been destroyed: captures that began in it have ended. */
void captures_stream_gone(CUstream stream);
void captures_context_gone(CUcontext context);

/* In a forked child. */
void captures_reset(void);
