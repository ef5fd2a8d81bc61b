/* For each green context the driver takes a reference to the device's primary context, without a call that is hooked. */
#pragma once

#include "abi/cuda_abi.h"

/* Charges the device's primary context if `create` made it. */
CUresult context_create_green(CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice,
						 unsigned int),
			      CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device,
			      unsigned int flags);
/* The device's primary context may end with the green context. */
CUresult context_end_green(CUresult (*destroy)(CUgreenCtx), CUgreenCtx green, CUdevice device);
