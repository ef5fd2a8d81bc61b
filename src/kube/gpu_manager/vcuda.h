/*
 * What a pod's container asks for in gpu-manager's vocabulary (github.com/tkestack/gpu-manager): two resources that
 * stand in its limits, whose names are settings,
 *
 *     tencent.com/vcuda-core: 30     hundredths of a card's time, up to 100, or a multiple of 100: whole cards
 *     tencent.com/vcuda-memory: 20   units of 256 MiB
 *
 * and annotations of its pod:
 *
 *     tencent.com/vcuda-core-limit: 50    of each card's time, may be reached when others leave it
 *     tencent.com/predicate-gpu-idx-0     the numbers of the cards, by commas, that gpu-manager's scheduler (gpu-admission)
 *                                         has chosen for the first of its containers, init containers not counted
 *     tencent.com/predicate-time, gpu-assigned: false, predicate-node    of the same scheduler
 *     hami.io/vgpu-devices-to-allocate    the cards that a scheduler has chosen which speaks HAMi's protocol (shares.h), while
 *                                         bind-phase is allocating; -allocated: that it had chosen
 *     allot.dev/cards: 2, trainer.allot.dev/cards: 2    both resources are divided among so many cards, equally
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
#define VCUDA_INDEX "tencent.com/predicate-gpu-idx-" /* and the container's number */
#define VCUDA_TIME "tencent.com/predicate-time"
#define VCUDA_NODE "tencent.com/predicate-node"
#define VCUDA_ASSIGNED "tencent.com/gpu-assigned" /* "false", and then "true" */
#define VCUDA_CARDS "cards"                       /* of KUBE_LIVE_DOMAIN */

/* The resources' names. */
struct vcuda_names {
	const char *cores, *memory;
};

struct vcuda_ask {
	unsigned cores;     /* of all its cards together */
	unsigned units;     /* of all its cards together; 0: all that they have */
	unsigned cards;     /* among which both are divided, 1 or more */
	unsigned limit_pct; /* of each card's time; 0: not said, it is what the container has of it */
	unsigned chosen;    /* cards that a scheduler has chosen, as many as `cards`; 0: none has */
	bool is_by_shares;               /* in HAMi's protocol: by `uuid`; else by `minor` */
	unsigned minor[VCUDA_MAX_CARDS]; /* of each of those: the number of its device file */
	char uuid[VCUDA_MAX_CARDS][KUBE_ID_MAX];
};

/*
 * -ENODATA: it asks for neither resource. -EINVAL, -ERANGE: what is wrong and would be right; cores and units are
 * filled then as far as they can be read, else 0.
 */
int vcuda_ask_read(const struct kube_pod *pod, size_t container, const struct vcuda_names *names,
		   struct vcuda_ask *ret, struct error *err);

/* The same of what stands in the pod from its beginning alone, before any scheduler has chosen. */
int vcuda_wish_read(const struct kube_pod *pod, size_t container, const struct vcuda_names *names,
		    struct vcuda_ask *ret, struct error *err);

/* Is it the same, whichever cards it is on? */
bool vcuda_ask_is_same(const struct vcuda_ask *a, const struct vcuda_ask *b);

/* Of each of its cards. */
double vcuda_cores_pct(const struct vcuda_ask *ask);
double vcuda_limit_pct(const struct vcuda_ask *ask);
uint64_t vcuda_memory_bytes(const struct vcuda_ask *ask); /* whole MiB; 0: all that the card has */
