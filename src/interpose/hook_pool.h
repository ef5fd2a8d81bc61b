/*
 * Memory pools are charged by the bytes that they reserve on the card, not by what was asked of
 * them: the driver grows a pool in steps of 32 MiB and gives back at synchronizing calls of its own.
 */
#ifndef ALLOT_INTERPOSE_HOOK_POOL_H
#define ALLOT_INTERPOSE_HOOK_POOL_H

#include <stdint.h>

/* Makes the pools of device `index` give back what they can, and settles their charge. */
void hook_pool_trim(int index);

/* Helper thread: settles the charge of every pool, 50 times a second at most. */
void hook_pool_refresh(uint64_t now_ns);

/* In a forked child. */
void hook_pool_reset(void);

#endif
