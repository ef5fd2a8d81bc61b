/*
 * Memory pools are charged by the bytes that they reserve on the GPU, not by the bytes that the program requests.
 * The driver grows a pool in steps of 32 MiB, and gives memory back in synchronizing calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

/* Makes the pools of device `index` give back what they can, and updates their charge. */
void hook_pool_trim(int index);

/* Helper thread: updates the charge of every pool, at most 50 times a second. */
void hook_pool_refresh(uint64_t now_ns);

/*
 * Call when a pool is exported. *ret_key is the key by which other processes know the pool, or 0 if the pool is
 * not known here. A pool that has no key yet gets `wanted`, or a new key if `wanted` is 0.
 */
void hook_pool_exported(CUmemoryPool pool, uint64_t wanted, uint64_t *ret_key);

/*
 * Call for an imported pool, with the key from its descriptor. The process that made the pool is charged for what the pool
 * reserves.
 */
void hook_pool_imported(CUmemoryPool pool, uint64_t key);

/*
 * Call when `bytes` more are imported from the pool, or fewer if negative. Once the pool's maker is gone, this
 * process is charged for the largest sum that it ever had imported. Returns false if that does not fit the quota.
 */
bool hook_pool_import(CUmemoryPool pool, int index, int64_t bytes);

/* Call before an imported allocation is freed. Does nothing for other addresses. */
void hook_pool_freed_import(CUdeviceptr ptr);

/* Call in a forked child: forgets the state of the parent. */
void hook_pool_reset(void);
