/*
 * Records which devices may access which context's memory in a swappable process (cuCtxEnablePeerAccess). The driver does not
 * apply that call to memory of the virtual memory API, so access is set for each range (swap_backing.h). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"

#define SWAP_PEERS_MAX REGION_MAX_DEVICES

/*
 * Records that `device` may access the memory of the context `owner`, because the device's context `from` asked for that.
 * Returns false if the table is full.
 */
bool swap_peers_enable(CUcontext from, CUdevice device, CUcontext owner);

/* Removes a record of swap_peers_enable(). Returns true if no context of the device may access the memory any more. */
bool swap_peers_disable(CUcontext from, CUdevice device, CUcontext owner);

/* Writes the devices that may access the context's memory, except the context's own device. Returns how many. */
size_t swap_peers_of(CUcontext owner, CUdevice ret[SWAP_PEERS_MAX]);

/* Returns a counter that increases when a device gains or loses access. */
uint32_t swap_peers_generation(void);

/* Call after a context has ended: drops its records. */
void swap_peers_context_gone(CUcontext context);

/* Call in a forked child: forgets all records. */
void swap_peers_reset(void);
