/*
 * The stream captures of this process. A capture lasts from the call that begins it to cuStreamEndCapture, or to
 * the end of its stream or context. During a capture (process_state.captures) the library records nothing in any
 * stream (inflight.h), and memory stays on the GPU (swap.h). Thread safe.
 */
#pragma once

#include "abi/cuda_abi.h"

/* Call before and after the driver call that begins a capture. captures_began() returns `result`. */
void captures_begin(void);
CUresult captures_began(CUstream stream, CUresult result);
/* Call after cuStreamEndCapture, whatever its result. */
void captures_end_called(CUstream stream, CUresult result);
/* Call after the stream or the context was destroyed: captures that began in it have ended. */
void captures_stream_gone(CUstream stream);
void captures_context_gone(CUcontext context);

/* Call in a forked child: forgets the state of the parent. */
void captures_reset(void);
