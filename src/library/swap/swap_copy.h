/*
 * The copies of a move (swap.h): copies everything that is to move between the GPUs and the arena. Each GPU has
 * its own stream, so that all copy at the same time. Swap thread only, while the hold is shut.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "abi/cuda_abi.h"
#include "library/swap/swap_backing.h"

enum swap_copy { SWAP_COPY_OUT, SWAP_COPY_IN };

/* True if a move includes the backing. */
bool swap_copy_is_to_move(const struct backing *b);

/*
 * Copies, and returns when all is done. Reports progress in the slot. Returns CUDA_ERROR_NOT_READY if goes_on()
 * returned false meanwhile.
 */
CUresult swap_copy_all(enum swap_copy way, bool (*goes_on)(void));
