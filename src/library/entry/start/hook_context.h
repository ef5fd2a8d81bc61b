/* References to a primary context that a green context takes and gives back past our hooks. */
#pragma once

#include "abi/cuda_abi.h"

/* Calls `create`, with a charge for the device's primary context where there is none yet. */
CUresult context_create_green(CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice,
						 unsigned int),
			      CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device,
			      unsigned int flags);
/* Calls `destroy`; the device's primary context may end with the green one. */
CUresult context_end_green(CUresult (*destroy)(CUgreenCtx), CUgreenCtx green, CUdevice device);
