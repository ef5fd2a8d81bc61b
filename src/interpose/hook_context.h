/* References to a primary context that a green context takes and gives back past our hooks. */
#ifndef ALLOT_INTERPOSE_HOOK_CONTEXT_H
#define ALLOT_INTERPOSE_HOOK_CONTEXT_H

#include "driver/cuda_abi.h"

/* A green context of the device was made. The caller holds a reference of its own meanwhile. */
void context_of_green_retained(CUdevice device);
/* Calls `destroy`; the device's primary context may end with the green one. */
CUresult context_end_green(CUresult (*destroy)(CUgreenCtx), CUgreenCtx green, CUdevice device);

#endif
