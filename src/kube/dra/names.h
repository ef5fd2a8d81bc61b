/* Names of the DRA driver that clusters, users and other programs rely on. */
#pragma once

#define DRA_DRIVER "gpu.allot.dev"
#define DRA_API "/apis/resource.k8s.io/v1"
#define DRA_DEVICE_MAX 64 /* of a device's name, its NUL included: a DNS label */
#define DRA_POOL_MAX 320  /* of a pool's: a node's name, 253 at most, and a device's */

/* Taints of a device (gate DRADeviceTaints): what runs there goes on, and nothing new comes. */
#define DRA_TAINT_CORDONED DRA_DRIVER "/cordoned"
#define DRA_TAINT_UNHEALTHY DRA_DRIVER "/unhealthy"

/* Capacities of a device. */
#define DRA_MEMORY "memory" /* bytes */
#define DRA_CORES "cores"   /* percent of the GPU's time */
