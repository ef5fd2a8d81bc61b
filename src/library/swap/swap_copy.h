/*
 * The copies of a move (swap.h): all that is to move, between the cards and the arena, each card by a stream of
 * its own, so that they run at once. Swap thread alone, while the hold is shut.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "abi/cuda_abi.h"
#include "library/swap/swap_backing.h"

enum swap_copy { SWAP_COPY_OUT, SWAP_COPY_IN };

bool swap_copy_is_to_move(const struct backing *b);

/*
 * Copies, and returns when it is done; tells progress in the slot. CUDA_ERROR_NOT_READY: *stop was set
 * meanwhile.
 */
CUresult swap_copy_all(enum swap_copy way, bool (*goes_on)(void));
