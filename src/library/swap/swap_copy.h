/* Copies between GPUs and arena in a move (swap.h), on all GPUs at once. For the swap thread, with the hold closed. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "abi/cuda_abi.h"
#include "library/swap/swap_backing.h"

enum swap_copy { SWAP_COPY_OUT, SWAP_COPY_IN };

/* Returns once all is copied, or CUDA_ERROR_NOT_READY when may_continue() is false. Reports progress in the slot. */
CUresult swap_copy_all(enum swap_copy way, bool (*may_continue)(void));
