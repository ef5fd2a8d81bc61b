/*
 * Copies the memory of a move (swap.h) between the GPUs and the arena, with one stream per GPU, so that all GPUs copy at the
 * same time. For the swap thread, while the hold (swap_hold.h) is closed.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "abi/cuda_abi.h"
#include "library/swap/swap_backing.h"

enum swap_copy { SWAP_COPY_OUT, SWAP_COPY_IN };

/* True if a move includes the backing; false if the backing must stay on the GPU (is_kept). */
bool swap_copy_is_movable(const struct backing *b);

/*
 * Copies all movable backings, and waits for the copies. Returns CUDA_ERROR_NOT_READY if may_continue() returned false between
 * two parts. Reports progress in the slot.
 */
CUresult swap_copy_all(enum swap_copy way, bool (*may_continue)(void));
