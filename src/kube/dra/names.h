/* Names of the DRA driver. Clusters, users and other programs depend on them. */
#pragma once

#define DRA_DRIVER "gpu.allot.dev"
#define DRA_API "/apis/resource.k8s.io/v1"
#define DRA_DEVICE_MAX 64 /* size of a device's name, a DNS label, with its NUL */
/* size of a pool's name: a node's name (at most 253 bytes) and a device's */
#define DRA_POOL_MAX 320

/*
 * Taints of a device (feature gate DRADeviceTaints). Pods that run on the device continue; no new
 * ones come.
 */
#define DRA_TAINT_CORDONED DRA_DRIVER "/cordoned"
#define DRA_TAINT_UNHEALTHY DRA_DRIVER "/unhealthy"

/* Capacities of a device. */
#define DRA_MEMORY "memory" /* bytes */
#define DRA_CORES "cores"   /* percent of the GPU's time */
