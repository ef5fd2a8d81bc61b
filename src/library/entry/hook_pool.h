/*
 * Memory pools are charged by the bytes that they reserve on the card, not by what was asked of
 * them: the driver grows a pool in steps of 32 MiB and gives back at synchronizing calls of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

/* Makes the pools of device `index` give back what they can, and settles their charge. */
void hook_pool_trim(int index);

/* Helper thread: settles the charge of every pool, 50 times a second at most. */
void hook_pool_refresh(uint64_t now_ns);

/*
 * A pool is given out: *ret_key is what others know it by, `wanted` if it had no key yet and that is not
 * 0; or 0, when the pool is not known.
 */
void hook_pool_exported(CUmemoryPool pool, uint64_t wanted, uint64_t *ret_key);

/* A pool of another process, by the key that its descriptor told: what it reserves is charged there. */
void hook_pool_imported(CUmemoryPool pool, uint64_t key);

/*
 * So many bytes more of it, or fewer, are imported. The most that ever were is charged here, once its
 * maker is gone. False: that does not fit in the quota.
 */
bool hook_pool_import(CUmemoryPool pool, int index, int64_t bytes);

/* Before an allocation that was imported is freed; any other address is fine. */
void hook_pool_freed_import(CUdeviceptr ptr);

/* In a forked child. */
void hook_pool_reset(void);
