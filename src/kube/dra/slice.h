/*
 * Makes the ResourceSlices (resource.k8s.io/v1) that describe a node's GPUs to schedulers. Thread safe.
 *
 * A GPU or MIG instance is one device, which several claims may share. Each device has its own pool and slice, because
 * kube-scheduler 1.34 compares a request only with a slice's first device (kubernetes/kubernetes#133705), and so that a change
 * of one GPU leaves other pools unchanged.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/dra/dra_names.h"

/* The slice leaves out strings that are "" or NULL, and numbers that are unknown. */
struct dra_device {
	const char *uuid, *product;
	bool is_instance;
	const char *parent_uuid; /* the instance's GPU; NULL for a GPU */
	uint64_t memory_bytes;
	uint64_t memory_left_bytes; /* total minus the memory of tenants without a ResourceClaim */
	unsigned cores_left_pct;    /* 100 minus the cores of tenants without a ResourceClaim */
	unsigned capability_major, capability_minor; /* CUDA compute capability; 0.0 if unknown */
	/* newest CUDA version that the driver supports; 0.0 if unknown */
	unsigned cuda_major, cuda_minor;
	const char *driver_version;
	bool numa_known;
	unsigned numa;
	const char *pci_address, *pcie_root;
	/* GPUs with the same nvlink_domain are connected by NVLink */
	const char *nvlink_domain;
	unsigned multiprocessors;
	bool is_cordoned, is_unhealthy; /* each gives a taint */
};

/* Leaves out devices with less than 2 MiB of memory left. Returns a new reference, or NULL if out of memory. */
json_t *dra_devices(const struct dra_device *device, size_t count);

bool dra_devices_are_tainted(const json_t *devices);
json_t *dra_devices_without_taints(const json_t *devices);

/*
 * Make the names of a device's pool, "<node>/<device>", and of its slice, "<node>-<device>-<driver>". If the name gets too
 * long, the node's part is cut. The device's part stays whole, because it is unique.
 */
void dra_pool_name(const char *node, const char *device, char ret[DRA_POOL_MAX]);
void dra_slice_name(const char *node, const char *device, char ret[DRA_POOL_MAX]);

struct dra_slice_names {
	const char *node, *node_uid; /* the Node that owns the slice */
	const char *name, *pool;
};

/*
 * Makes a slice, the only one of its pool. The caller keeps `devices`. `version` is the resourceVersion of the slice to
 * replace, or NULL for a new slice. Returns a new reference, or NULL if out of memory.
 */
json_t *dra_slice(const struct dra_slice_names *names, const char *version, int64_t generation,
		  json_t *devices);

/*
 * Adds the GPUs' memory sizes in `slices`, a list from the API server, to sizes_mib, a sorted list without duplicates. Leaves
 * out MIG instances. Returns 0 or -ENOMEM.
 */
int dra_add_memory_sizes(const json_t *slices, json_t *sizes_mib);

/*
 * Whether the slice, as the API server stored it, lets several claims share its first device. The API server drops the field
 * allowMultipleAllocations if its feature gate DRAConsumableCapacity is off.
 */
bool dra_slice_is_shared(const json_t *slice);
