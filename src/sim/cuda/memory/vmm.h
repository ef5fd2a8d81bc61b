/* Shared by vmm.c, vmm_share.c (memory of other processes) and multicast.c. Call every function with sim.lock held. */
#pragma once

#include "sim/cuda/sim.h"

struct binding {
	struct binding *next;
	struct vmm *memory;
	CUdevice dev;
	uint64_t offset, bytes;
};

struct vmm {
	uint32_t magic;
	struct vmm *next;
	CUmemAllocationProp prop;
	uint64_t bytes;
	uint32_t block;      /* memory at the server; 0 for host memory and multicast objects */
	void *bytes_at;      /* host memory with the contents; NULL if they are not kept */
	uint32_t refs, maps; /* maps: number of mappings, and of bindings to multicast objects */
	bool is_multicast;
	uint32_t devices; /* of a multicast object; bit i: device i */
	struct binding *bindings;
};

struct vmm *sim_vmm_of(CUmemGenericAllocationHandle handle);
struct vmm *sim_vmm_new(const CUmemAllocationProp *prop, uint64_t bytes, uint32_t block);
/* Frees the struct if it has neither references nor mappings. */
void sim_vmm_check(struct vmm *vmm);
struct vmm *sim_vmm_at(CUdeviceptr ptr);
