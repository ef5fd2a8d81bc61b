/*
 * A container's request for a node's GPUs, and the reasons why a GPU cannot serve it. Reasons and their order are HAMi's,
 * because users know them from events and metrics. (HAMi's reason for a node without any device is left out; CardNotServed,
 * CardUseUnknown and CardCordoned are not HAMi's.)
 */
#pragma once

#include <stddef.h>

#include "policy/placement/place_node.h"

enum place_memory {
	PLACE_MEMORY_BYTES,
	PLACE_MEMORY_PCT, /* percent of the total memory, as HAMi counts gpumem-percentage */
	PLACE_MEMORY_ALL, /* all memory of the GPU that is not reserved */
};

enum place_policy {
	PLACE_POLICY_AUTO, /* same as PLACE_POLICY_TOPOLOGY */
	PLACE_POLICY_BINPACK,
	PLACE_POLICY_SPREAD,
	PLACE_POLICY_TOPOLOGY,
};

/* Names of GPUs, or parts of names, owned by the caller. */
struct place_words {
	const char *const *word;
	size_t count;
};

#define PLACE_MAX_EVALUATORS 5

/* Weights of the parts of a GPU's score (score.h). */
struct place_weights {
	unsigned slots, cores, memory;
};

struct place_request {
	unsigned count; /* GPUs, at least 1 */
	enum place_memory memory;
	/* of each GPU: the exact amount for PLACE_MEMORY_BYTES, a lower bound for PLACE_MEMORY_PCT */
	uint64_t memory_bytes;
	unsigned memory_pct; /* used only with PLACE_MEMORY_PCT; 0 to 100 */
	/* part of each GPU's time; with 100 % or more, the GPU is not shared */
	uint32_t cores_mpct;
	enum place_policy policy;
	struct place_words use_uuid, nouse_uuid; /* whole UUIDs */
	struct place_words must_uuid; /* whole UUIDs of GPUs that must be among the chosen ones */
	/* parts of a model's name; case does not matter */
	struct place_words use_type, nouse_type;
	bool numa_bind; /* all GPUs must be of one NUMA node */
	/* names of evaluators (evaluate.h), in order; evaluator_count 0: those of the policy */
	const char *evaluator[PLACE_MAX_EVALUATORS];
	unsigned evaluator_count;
	bool has_weights; /* false: all parts of the score count the same */
	struct place_weights weights;
};

bool place_needs_whole_card(const struct place_request *request);

struct place_need {
	uint64_t memory_bytes;
	uint32_t cores_mpct;
};
struct place_need place_need(const struct place_card *card, const struct place_request *request);

/* Why a GPU does not serve, in the order of the checks. */
enum place_reason {
	PLACE_FITS,
	/* set by the scheduler: the node's kubelet has no device plugin for the resource */
	PLACE_CARD_NOT_SERVED,
	/* set by the scheduler: it cannot read which shares a pod on the node has */
	PLACE_CARD_USE_UNKNOWN,
	PLACE_CARD_NOT_HEALTH,
	PLACE_CARD_CORDONED,
	PLACE_CARD_TYPE_MISMATCH, /* also for a MIG instance if several GPUs are asked for */
	PLACE_NUMA_NOT_FIT,       /* the GPU serves, but its NUMA node has too few such GPUs */
	PLACE_CARD_UUID_MISMATCH,
	PLACE_CARD_TIME_SLICING_EXHAUSTED,
	PLACE_QUOTA_NOT_FIT, /* set by callers that know the namespace's quota */
	PLACE_CARD_INSUFFICIENT_MEMORY,
	PLACE_CARD_INSUFFICIENT_CORE,
	PLACE_EXCLUSIVE_CONFLICT,      /* an unshared GPU is asked for, and this one is in use */
	PLACE_COMPUTE_UNITS_EXHAUSTED, /* no compute is asked for, but the GPU has none left */
	PLACE_ALLOCATED_INSUFFICIENT,  /* the GPU would serve, but there are too few such GPUs */
	PLACE_REASON_COUNT,
};

/* The reason's name in events and metrics, such as "CardInsufficientMemory"; "" for PLACE_FITS. */
const char *place_reason_name(enum place_reason reason);

/* True if `type` contains a name of `use` (or `use` is empty) and none of `nouse`. */
bool place_is_type(struct place_words use, struct place_words nouse, const char *type);

/* Ignores NUMA nodes, and whether enough GPUs serve. Returns PLACE_FITS or the first reason that applies. */
enum place_reason place_check_card(const struct place_card *card,
				   const struct place_request *request);

/*
 * Writes a text such as "3/8 CardInsufficientMemory, 5/8 CardNotHealth", in the order of the checks, cut at `size`;
 * "NodeInsufficientDevice" if the request asks for more than card_count GPUs. Returns as snprintf().
 */
int place_reasons_text(const enum place_reason *reason, unsigned card_count,
		       const struct place_request *request, char *text, size_t size);
