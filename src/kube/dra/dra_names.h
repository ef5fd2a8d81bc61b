/* Names of the DRA driver. Clusters, users and other programs depend on them. */
#pragma once

#define DRA_DRIVER "gpu.allot.dev"
#define DRA_API "/apis/resource.k8s.io/v1"
#define DRA_DEVICE_MAX 64 /* size of a device's name, a DNS label, with its NUL */
#define DRA_POOL_MAX 254  /* size of the name of a pool or slice, with its NUL */

/* Taints of a device (feature gate DRADeviceTaints): the scheduler gives it to no new pod; its pods continue. */
#define DRA_TAINT_CORDONED DRA_DRIVER "/cordoned"
#define DRA_TAINT_UNHEALTHY DRA_DRIVER "/unhealthy"

#define DRA_MEMORY "memory" /* bytes */
#define DRA_CORES "cores"   /* percent of the GPU's time */
