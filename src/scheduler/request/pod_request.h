/*
 * Reads a pod's request: the limits of its containers, in the vocabulary of HAMi or of gpu-manager, and its annotations.
 *
 *     nvidia.com/gpu: 2                  number of cards; the other values are per card. Default 1 if another value is named
 *     nvidia.com/gpumem: 3000            MiB
 *     nvidia.com/gpumem-percentage: 50   percent of the card's memory, instead of MiB. If both are missing: all memory
 *     nvidia.com/gpucores: 30            percent of the card's compute. If this and memory are missing: the whole card
 *
 *     tencent.com/vcuda-core, tencent.com/vcuda-memory     see kube/gpu_manager/vcuda.h
 *
 *     nvidia.com/use-gputype, nouse-gputype, use-gpuuuid, nouse-gpuuuid, numa-bind, vgpu-mode
 *     hami.io/gpu-scheduler-policy       binpack, spread, topology-aware, numa, mutex, or allot's fragmentation; a list
 *                                        separated by commas, where the first policy has precedence
 *     hami.io/node-scheduler-policy      binpack, spread, or allot's fragmentation
 *     hami.io/device-scoring-weights     slot=1,core=1,memory=3
 *     allot.dev/memory, allot.dev/cores  amounts that the node raises the limits to, if higher (kube/own/live.h)
 *     allot.dev/placement                use: the pod is opportunistic (opportunistic.h); guarantee: it is not
 *
 * Pure, except for memory; thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kube/gpu_manager/vcuda.h"
#include "kube/hami/pod.h"
#include "policy/placement/place_request.h"

/* Names of the resources, and default values. The caller owns the strings. */
struct request_terms {
	const char *count, *memory, *memory_pct, *cores;
	struct vcuda_names vcuda;
	unsigned default_count;
	uint64_t default_memory_mib; /* 0 for all memory of the card */
	unsigned default_cores_pct;  /* 0 for no guarantee */
	/* default policies, in the format of the annotations hami.io/node-scheduler-policy and gpu-scheduler-policy */
	const char *node_policy, *gpu_policy;
	bool places_by_use; /* false: allot.dev/placement is ignored */
};

/* HAMi's names and defaults: one card with all its memory; binpack for nodes, spread for cards. */
extern const struct request_terms request_terms_default;

/*
 * Most shares of cards that a pod's containers may request together; request_read() refuses more. One container needs no limit,
 * because each of its shares is on another card.
 */
#define REQUEST_SHARES_MAX 512

/* Vendors of resource names: HAMi, or gpu-manager (vcuda). A node's kubelet may serve the names of both, one or neither. */
enum request_names {
	REQUEST_NAMES_HAMI = 1,
	REQUEST_NAMES_VCUDA = 2,
	REQUEST_NAMES_ALL = REQUEST_NAMES_HAMI | REQUEST_NAMES_VCUDA,
};

/* One container's request for cards. */
struct request_part {
	size_t container; /* index in the pod, init containers first, as in kube/hami/shares.h */
	bool is_init;     /* ends before the main containers begin */
	bool is_sidecar;  /* an init container that runs beside all later ones */
	/* struct request owns the strings, and has the lists of card types for all parts */
	struct place_request place;
};

/* The order in which nodes are preferred. */
enum request_node_policy {
	REQUEST_NODES_BINPACK,
	REQUEST_NODES_SPREAD,
	/* nodes where the pod takes the least room from frequent kinds of requests (policy/placement/room.h) */
	REQUEST_NODES_FRAGMENTATION,
	REQUEST_NODES_COUNT,
};
/* The values of hami.io/node-scheduler-policy, in the order of enum request_node_policy; NULL-terminated. */
extern const char *const request_node_policy_names[];

struct request {
	size_t containers;         /* number of init and main containers together */
	size_t count;              /* number of parts; 0 if the pod requests no card */
	struct request_part *part; /* in the order of the containers; owned */
	/* Lists of card types: wanted, and unwanted. All parts have the same lists, so fit.h checks each type once. */
	struct place_words use_type, nouse_type;
	enum request_node_policy node_policy;
	unsigned names; /* bit mask of enum request_names over all parts */
	/* the pod's compute is not guaranteed; it is borrowed while others do not use it */
	bool is_opportunistic;
	/* the pod takes only cards without any share, even of its other containers */
	bool is_mutex;
	/* value of nvidia.com/vgpu-mode: a card serves if this text contains its mode; NULL: any mode; points into `text` */
	const char *mode;
	char *text;        /* holds `mode` and the words of all lists; owned */
	const char **word; /* the lists' arrays; owned */
};

/*
 * Free *ret with request_free(). Returns 0, -ENOMEM, -EINVAL or -ERANGE. On the last two, err names the container, the limit or
 * annotation, and what would be right.
 */
int request_read(const struct kube_pod *pod, const struct request_terms *terms, struct request *ret,
		 struct error *err);
void request_free(struct request *request);
/* Digest of all that request_read() reads: pods of one namespace with equal digests fit the same nodes equally well. */
uint64_t request_source(const struct kube_pod *pod);
