/*
 * Memory pools are charged by the bytes that they reserve on the GPU, not by the bytes that the program requests. The driver
 * grows a pool in steps of 32 MiB. It returns unused memory of a pool to the GPU when the program waits for GPU work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

void hook_pool_trim(int index);

/* Updates the charge of every pool, at most 50 times a second. Called by the helper thread (helper.h). */
void hook_pool_refresh(uint64_t now_ns);

/*
 * Call when a pool is exported. *ret_key identifies the pool in other processes; 0 if this process does not know the pool or
 * has imported it. A pool without a key gets `wanted`, or a new key if `wanted` is 0.
 */
void hook_pool_exported(CUmemoryPool pool, uint64_t wanted, uint64_t *ret_key);

/* Call for an imported pool, with the key from its descriptor. The pool's creator is charged for what the pool reserves. */
void hook_pool_imported(CUmemoryPool pool, uint64_t key);

/*
 * Call when `bytes` of the pool's memory were imported, or freed again if negative. Once the pool's creator has ended or
 * destroyed the pool, this process is charged for the most that it had imported at one time. Returns false if that exceeds the
 * quota.
 */
bool hook_pool_import(CUmemoryPool pool, int index, int64_t bytes);

/* Call before an imported allocation is freed. Does nothing for other addresses. */
void hook_pool_freed_import(CUdeviceptr ptr);

/* Call in a forked child: forgets all pools. */
void hook_pool_reset(void);
