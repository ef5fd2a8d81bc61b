/*
 * A container's request in gpu-manager's terms (github.com/tkestack/gpu-manager). The request has two resources in the
 * container's limits. Settings give the resources' names; these are the defaults:
 *
 *     tencent.com/vcuda-core: 30     hundredths of a GPU's time, up to 100; or a multiple of 100 for whole GPUs; or, with
 *                                    allot.dev/cards (below), up to 100 for each GPU
 *     tencent.com/vcuda-memory: 20   units of 256 MiB
 *
 * The request also has these annotations of the pod:
 *
 *     tencent.com/vcuda-core-limit: 50    the most percent of each GPU's time, if other tenants leave the GPU idle
 *     tencent.com/predicate-gpu-idx-0     the numbers of the GPUs, separated by commas, that gpu-manager's scheduler
 *                                         (gpu-admission) chose for the first container after the init containers
 *     tencent.com/predicate-time, gpu-assigned: false, predicate-node    from the same scheduler
 *     hami.io/vgpu-devices-to-allocate    the GPUs chosen by a scheduler that uses HAMi's protocol (shares.h), while
 *                                         bind-phase is allocating
 *     hami.io/vgpu-devices-allocated      the same GPUs, when bind-phase is no longer allocating
 *     allot.dev/cards: 2, trainer.allot.dev/cards: 2    the number of GPUs over which both amounts are spread evenly
 *
 * Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/hami/annotations.h"
#include "kube/hami/pod.h"

#define VCUDA_CORES_WHOLE 100
#define VCUDA_UNIT_BYTES (UINT64_C(256) << 20)
#define VCUDA_MAX_CARDS 16
#define VCUDA_MAX_UNITS 1000000

#define VCUDA_LIMIT "tencent.com/vcuda-core-limit"
#define VCUDA_INDEX "tencent.com/predicate-gpu-idx-" /* followed by the container's number */
#define VCUDA_TIME "tencent.com/predicate-time"
#define VCUDA_NODE "tencent.com/predicate-node"
#define VCUDA_ASSIGNED "tencent.com/gpu-assigned" /* "false", then "true" */
#define VCUDA_CARDS "cards"                       /* in the domain KUBE_LIVE_DOMAIN */

struct vcuda_names {
	const char *cores, *memory;
};

struct vcuda_request {
	unsigned cores; /* hundredths of a GPU's time, on all its GPUs together */
	unsigned units; /* units of 256 MiB, on all its GPUs together; 0 means all their memory */
	unsigned cards;
	/* limit in percent of each GPU's time; 0 if not given: then the guaranteed share is the limit */
	unsigned limit_pct;
	/* number of GPUs that a scheduler chose: equal to `cards`, or 0 */
	unsigned chosen;
	/* true: chosen by HAMi's protocol, and `uuid` names the GPUs; false: `minor` names them */
	bool is_by_shares;
	unsigned minor[VCUDA_MAX_CARDS]; /* device file number of each chosen GPU */
	char uuid[VCUDA_MAX_CARDS][KUBE_ID_MAX];
};

/*
 * Reads what a container requests, and the GPUs that a scheduler chose. Returns -ENODATA if neither resource is requested.
 * Returns -EINVAL or -ERANGE if a value is invalid: cores and units are then set if they could be read, else 0.
 */
int vcuda_request_read(const struct kube_pod *pod, size_t container, const struct vcuda_names *names,
		       struct vcuda_request *ret, struct error *err);

/* Like vcuda_request_read(), without the scheduler's choice. */
int vcuda_request_read_amounts(const struct kube_pod *pod, size_t container,
			       const struct vcuda_names *names, struct vcuda_request *ret,
			       struct error *err);

bool vcuda_request_is_same(const struct vcuda_request *a, const struct vcuda_request *b);

/* In percent of each GPU's time. */
double vcuda_cores_pct(const struct vcuda_request *request);
double vcuda_limit_pct(const struct vcuda_request *request);
/* On each GPU, rounded down to whole MiB; 0 means all its memory. */
uint64_t vcuda_memory_bytes(const struct vcuda_request *request);
