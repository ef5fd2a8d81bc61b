/* Green contexts. For each one the driver takes a reference to the device's primary context, without a call that is hooked. */
#pragma once

#include "abi/cuda_abi.h"

/* Calls `create`, and charges the device's primary context if that call made it. */
CUresult context_create_green(CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice,
						 unsigned int),
			      CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device,
			      unsigned int flags);
/* Calls `destroy`. The device's primary context may end with the green context. */
CUresult context_end_green(CUresult (*destroy)(CUgreenCtx), CUgreenCtx green, CUdevice device);
