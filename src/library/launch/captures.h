/*
 * The stream captures of this process. A capture lasts until cuStreamEndCapture, or until its stream or context ends. During a
 * capture, the helper thread (helper.h) records no events, and the library moves no memory off the GPU. Thread safe.
 */
#pragma once

#include "abi/cuda_abi.h"

/*
 * Call before and after the driver call that begins a capture. Use WITH_MEMORY_STILL() (swap_hold.h) in the calling function:
 * if memory were already being moved off the GPU, the move would not see the capture. captures_began() returns `result`.
 */
void captures_begin(void);
CUresult captures_began(CUstream stream, CUresult result);
void captures_end_called(CUstream stream, CUresult result);
/* The end of a stream or context ends the captures in it. */
void captures_stream_gone(CUstream stream);
void captures_context_gone(CUcontext context);

/* Call in a forked child. */
void captures_reset(void);
