/*
 * A pod's request: the limits of its containers, in the vocabulary of HAMi or of gpu-manager, and its annotations.
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
	uint64_t default_memory_mib;          /* 0 for all memory of the card */
	unsigned default_cores_pct;           /* 0 for no guarantee */
	const char *node_policy, *gpu_policy; /* same format as the annotations */
	bool places_by_use;                   /* false: allot.dev/placement is ignored */
};

/* HAMi's names and defaults: one card with all its memory; binpack for nodes, spread for cards. */
extern const struct request_terms request_terms_default;

/* Most shares of cards that all containers of a pod request together. */
#define REQUEST_SHARES_MAX 512

/* The vocabulary of a request. A node's kubelet serves some of the vocabularies, or none. */
enum request_words {
	REQUEST_WORDS_HAMI = 1,
	REQUEST_WORDS_VCUDA = 2,
	REQUEST_WORDS_ALL = REQUEST_WORDS_HAMI | REQUEST_WORDS_VCUDA,
};

/* The request of one container that requests cards. */
struct request_part {
	size_t container; /* index in the pod, init containers first, as in kube/hami/shares.h */
	bool is_init;     /* ends before the main containers begin */
	bool is_sidecar;  /* an init container that keeps running beside all later containers */
	struct place_request place; /* its strings belong to the request; without the type lists */
};

/* Which nodes have precedence. */
enum request_nodes {
	REQUEST_NODES_BINPACK,
	REQUEST_NODES_SPREAD,
	/* Nodes where the least room for other usual requests is lost (policy/placement/room.h). */
	REQUEST_NODES_FRAGMENTATION,
	REQUEST_NODES_COUNT,
};
/* The annotation's words for the values of enum request_nodes, in that order; NULL-terminated. */
extern const char *const request_nodes_words[];

struct request {
	size_t containers;         /* number of init and main containers together */
	size_t count;              /* number of parts; 0 if the pod requests no card */
	struct request_part *part; /* in the order of the containers; owned */
	/* Wanted and unwanted types, the same for all parts: fit.h checks each type only once. */
	struct place_words use_type, nouse_type;
	enum request_nodes nodes;
	unsigned words; /* bit mask of enum request_words over all parts */
	/* Its compute is not guaranteed, but borrowed while others do not use it. */
	bool is_opportunistic;
	/* Takes only cards without any share, also without shares of its own other containers. */
	bool is_mutex;
	/* String that must contain the mode of the card; NULL if any mode will do; points into `text`. */
	const char *mode;
	char *text;        /* memory of `mode` and of the words in all lists; owned */
	const char **word; /* memory of the lists' arrays; owned */
};

/*
 * Reads a pod's request. Returns -EINVAL or -ERANGE if it is malformed; err names the container, the limit or annotation, and
 * what would be right. Returns -ENOMEM if memory runs out.
 */
int request_read(const struct kube_pod *pod, const struct request_terms *terms, struct request *ret,
		 struct error *err);
void request_free(struct request *request); /* leaves a zeroed structure */
/* Returns a digest of everything that request_read() reads. Pods with equal digests fit the same nodes equally well. */
uint64_t request_source(const struct kube_pod *pod);
