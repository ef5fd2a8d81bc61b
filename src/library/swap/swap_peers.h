/*
 * Records which devices may access which context's memory in a swappable process. The driver does not apply
 * cuCtxEnablePeerAccess to memory of the virtual memory API, so access is set for each range (swap_backing.h). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"

#define SWAP_PEERS_MAX REGION_MAX_DEVICES

/* The device's context `from` asked for access to the memory of the context `owner`. Returns false if the table is full. */
bool swap_peers_enable(CUcontext from, CUdevice device, CUcontext owner);

/* Returns true if no context of the device may access the memory any more. */
bool swap_peers_disable(CUcontext from, CUdevice device, CUcontext owner);

/* Writes the devices that may access the context's memory, except its own device. Returns how many. */
size_t swap_peers_of(CUcontext owner, CUdevice ret[SWAP_PEERS_MAX]);

/* A counter that increases when a device gains or loses access. */
uint32_t swap_peers_generation(void);

void swap_peers_context_gone(CUcontext context);

/* Call in a forked child. */
void swap_peers_reset(void);
