/*
 * What a pod asks for: the limits of its containers, in HAMi's vocabulary or gpu-manager's, and its annotations.
 *
 *     nvidia.com/gpu: 2                  cards, each of which the rest is asked of; by default 1 where only the rest is named
 *     nvidia.com/gpumem: 3000            MiB
 *     nvidia.com/gpumem-percentage: 50   instead, of the card's memory. Neither: all of it
 *     nvidia.com/gpucores: 30            percent of the card's time. Neither this nor memory: the card alone
 *
 *     tencent.com/vcuda-core, tencent.com/vcuda-memory     as kube/gpu_manager/vcuda.h has it
 *
 *     nvidia.com/use-gputype, nouse-gputype, use-gpuuuid, nouse-gpuuuid, numa-bind, vgpu-mode
 *     hami.io/gpu-scheduler-policy       binpack, spread, topology-aware, numa, mutex, and of allot's own fragmentation; by
 *                                        commas, the first goes first
 *     hami.io/node-scheduler-policy      binpack, spread, and of allot's own fragmentation
 *     hami.io/device-scoring-weights     slot=1,core=1,memory=3
 *     allot.dev/memory, allot.dev/cores  kube/own/live.h: what its node will give it, where that is more than its limits
 *     allot.dev/placement                use: it fills what others leave of cards' time (opportunistic.h); guarantee
 *
 * Pure but for memory; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kube/gpu_manager/vcuda.h"
#include "kube/hami/pod.h"
#include "policy/placement/request.h"

/* The resources' names, and what is meant where nothing is said. Texts are the caller's. */
struct request_terms {
	const char *count, *memory, *memory_pct, *cores;
	struct vcuda_names vcuda;
	unsigned default_count;
	uint64_t default_memory_mib;          /* 0: all that the card has */
	unsigned default_cores_pct;           /* 0: no guarantee */
	const char *node_policy, *gpu_policy; /* as in the annotations */
	bool places_by_use; /* those that say so; else allot.dev/placement means nothing */
};

/* HAMi's names and defaults: one card, all its memory; nodes binpack, cards spread. */
extern const struct request_terms request_terms_default;

#define REQUEST_SHARES_MAX 512 /* of cards, that several containers of a pod may ask for */

/* Whose words it is asked in: a node's kubelet serves one of them, or none. */
enum request_words {
	REQUEST_WORDS_HAMI = 1,
	REQUEST_WORDS_VCUDA = 2,
	REQUEST_WORDS_ALL = REQUEST_WORDS_HAMI | REQUEST_WORDS_VCUDA,
};

/* Of one container that asks for cards. */
struct request_part {
	size_t container; /* its place in the pod, init containers first, as in kube/hami/shares.h */
	bool is_init;     /* it has ended before those that are not begin */
	bool is_sidecar;  /* an init container that goes on beside all that come after it */
	struct place_request place; /* its texts are the request's; of any type */
};

/* Which nodes are taken first. */
enum request_nodes {
	REQUEST_NODES_BINPACK,
	REQUEST_NODES_SPREAD,
	REQUEST_NODES_FRAGMENTATION, /* where the least room is lost for what else is asked for: policy/placement/room.h */
	REQUEST_NODES_COUNT,
};
/* Their words, in that order, NULL at the end. */
extern const char *const request_nodes_words[];

struct request {
	size_t containers;         /* of the pod, of both kinds */
	size_t count;              /* of parts; 0: it asks for no card */
	struct request_part *part; /* in the containers' order; owned */
	/* Of cards, the same for all parts: fit.h compares each but once. */
	struct place_words use_type, nouse_type;
	enum request_nodes nodes;
	unsigned words;        /* enum request_words, of all parts: a bit each */
	bool is_opportunistic; /* its cores are not to be promised, but lent while others leave them */
	bool is_mutex;     /* cards that nobody is on alone, none of its other containers either */
	const char *mode;  /* a card's mode has to stand in it; NULL: any will do; of `text` */
	char *text;        /* what words and mode point into; owned */
	const char **word; /* owned */
};

/* -EINVAL, -ERANGE with the container, the limit or annotation, and what would be right; -ENOMEM. */
int request_read(const struct kube_pod *pod, const struct request_terms *terms, struct request *ret,
		 struct error *err);
void request_free(struct request *request); /* leaves one of zeros */
/* A digest of what is read of it: whatever fits one pod fits another of the same digest as well, and just as well. */
uint64_t request_source(const struct kube_pod *pod);
