/* Between vmm.c (handles that are memory), vmm_share.c (other processes') and multicast.c. All with
 * sim.lock. */
#pragma once

#include "sim/cuda/sim.h"

/* Memory bound to a multicast object. */
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
	uint32_t block;      /* 0: host memory, or a multicast object */
	void *bytes_at;      /* what is kept in it, wherever it is mapped; NULL: nothing is */
	uint32_t refs, maps; /* a binding counts as a mapping */
	bool is_multicast;
	uint32_t devices; /* of a multicast object: bit i: device i */
	struct binding *bindings;
};

struct vmm *sim_vmm_of(CUmemGenericAllocationHandle handle);
struct vmm *sim_vmm_new(const CUmemAllocationProp *prop, uint64_t bytes, uint32_t block);
/* Frees it when nothing refers to it. */
void sim_vmm_check(struct vmm *vmm);
/* The memory mapped at an address, or NULL. */
struct vmm *sim_vmm_at(CUdeviceptr ptr);
