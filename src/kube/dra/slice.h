/*
 * The ResourceSlices (resource.k8s.io/v1) that tell schedulers of a node's GPUs. A GPU, or an instance of MIG, is a device that
 * several claims may have parts of. Each has a pool and a slice of its own: kube-scheduler 1.34 compares a request with the first
 * device of a slice, whichever it looks at (kubernetes/kubernetes#133705), and a change of one GPU leaves the other pools as they
 * are. Pure but for memory; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/dra/names.h"

/* What is told of a GPU. Texts that are "" or NULL and numbers that are not known are left out. */
struct dra_device {
	const char *uuid, *product;
	bool is_instance;           /* of MIG */
	const char *parent_uuid;    /* of an instance: its GPU's */
	uint64_t memory_bytes;      /* all of it */
	uint64_t memory_left_bytes; /* without what tenants have that are of no ResourceClaim */
	unsigned cores_left_pct;    /* the same of the 100 percent */
	unsigned capability_major, capability_minor; /* of CUDA; 0.0: not known */
	unsigned cuda_major, cuda_minor; /* the newest that the driver knows; 0.0: not known */
	const char *driver_version;
	bool numa_known;
	unsigned numa;
	const char *pci_address, *pcie_root;
	const char *nvlink_domain; /* GPUs of one value are linked by NVLink, directly or over others of them */
	unsigned multiprocessors;
	bool is_cordoned, is_unhealthy; /* a taint each */
};

/* The device's name: its UUID as a DNS label. */
void dra_device_name(const char *uuid, char ret[DRA_DEVICE_MAX]);

/* "devices" of the slice, of those that have a share left to give. A new reference; NULL: no memory. */
json_t *dra_devices(const struct dra_device *device, size_t count);

/* Has one of the devices a taint? */
bool dra_devices_are_tainted(const json_t *devices);
/* Those without taints; a new list. NULL: no memory. */
json_t *dra_devices_without_taints(const json_t *devices);

/* The name of a device's pool: node and device, with a slash between. */
void dra_pool_name(const char *node, const char *device, char *ret, size_t size);

struct dra_slice_names {
	const char *node, *node_uid; /* of the Node that owns it */
	const char *name, *pool;
};

/*
 * A slice for the API server, all of its pool. `devices` stays the caller's. `version` NULL: it is new, else it takes the place of
 * that one. A new reference; NULL: no memory.
 */
json_t *dra_slice(const struct dra_slice_names *names, const char *version, int64_t generation,
		  json_t *devices);

/*
 * Adds to a list the MiB of whole GPUs, each once and the least first, of a list of slices as the API server answers it. -ENOMEM.
 */
int dra_add_memory_sizes(const json_t *slices, json_t *sizes_mib);

/* Does one device say in the answer that several claims may have it? False: the cluster's feature gate is off. */
bool dra_slice_is_shared(const json_t *slice);
