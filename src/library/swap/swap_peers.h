/*
 * Which devices a program let reach which context's memory (cuCtxEnablePeerAccess), in a swappable process: the
 * driver does not apply that to memory of the virtual memory API, which has its access said range by range
 * (swap_backing.h). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"

#define SWAP_PEERS_MAX REGION_MAX_DEVICES

/* Records that `device` may reach the memory of `owner`, as `from` asked. False: the table is full. */
bool swap_peers_enable(CUcontext from, CUdevice device, CUcontext owner);

/* Takes one such record back. True: no context of the device may reach the memory any more. */
bool swap_peers_disable(CUcontext from, CUdevice device, CUcontext owner);

/* The devices that may reach the context's memory, its own not among them; how many. */
size_t swap_peers_of(CUcontext owner, CUdevice ret[SWAP_PEERS_MAX]);

/* Increases with each change. */
uint32_t swap_peers_changes(void);

/* The context is gone: drop its records. */
void swap_peers_context_gone(CUcontext context);

/* In a forked child. */
void swap_peers_reset(void);
