/*
 * What a container asks of a node's cards, and why a card can't serve it.
 *
 * The reasons and the order in which they are looked for are HAMi's, so that events and metrics read
 * as its users know them. One of HAMi's is not here, since it concerns no card: a node without the
 * device at all.
 */
#pragma once

#include <stddef.h>

#include "policy/placement/node.h"

/* How much of a card's memory. */
enum place_memory {
	PLACE_MEMORY_BYTES,
	PLACE_MEMORY_PCT, /* of what the card has in all, as HAMi counts gpumem-percentage */
	PLACE_MEMORY_ALL, /* all that may be given out of it */
};

enum place_policy {
	PLACE_POLICY_AUTO, /* by what is asked: see evaluate.h */
	PLACE_POLICY_BINPACK,
	PLACE_POLICY_SPREAD,
	PLACE_POLICY_TOPOLOGY,
};

/* Names of cards or parts of them, the caller's. count 0: none were given. */
struct place_words {
	const char *const *word;
	size_t count;
};

#define PLACE_MAX_EVALUATORS 5

/* How much each part of a card's score (score.h) counts. */
struct place_weights {
	unsigned slots, cores, memory;
};

struct place_request {
	unsigned count; /* of cards, 1 or more */
	enum place_memory memory;
	uint64_t memory_bytes; /* of each card; of PLACE_MEMORY_BYTES, and the least of PLACE_MEMORY_PCT */
	unsigned memory_pct; /* of PLACE_MEMORY_PCT, 0 to 100 */
	uint32_t cores_mpct; /* of each card's time; 100 % or more: the card alone */
	enum place_policy policy;
	struct place_words use_uuid, nouse_uuid; /* a whole UUID */
	struct place_words must_uuid; /* cards that have to be among those chosen; whole UUIDs */
	struct place_words use_type, nouse_type; /* parts of a type's name, capitals or not */
	bool numa_bind;                          /* all cards of one NUMA node */
	/* Names of evaluators (evaluate.h), the first that tells two sets apart decides; 0: by policy. */
	const char *evaluator[PLACE_MAX_EVALUATORS];
	unsigned evaluator_count;
	bool has_weights; /* else all parts of a card's score count the same */
	struct place_weights weights;
};

/* Every card whole, whatever its size. */
bool place_asks_whole(const struct place_request *request);

/* What a request means on one card. */
struct place_need {
	uint64_t memory_bytes;
	uint32_t cores_mpct;
};
struct place_need place_need(const struct place_card *card, const struct place_request *request);

/* Why a card does not serve, in the order of the checks. */
enum place_reason {
	PLACE_FITS,
	PLACE_CARD_NOT_SERVED, /* its node's kubelet has no device plugin for what is asked: the scheduler says so */
	PLACE_CARD_USE_UNKNOWN, /* a pod there notes shares that can't be read: the scheduler says so */
	PLACE_CARD_NOT_HEALTH,
	PLACE_CARD_CORDONED,
	PLACE_CARD_TYPE_MISMATCH, /* also: an instance of MIG where several cards are asked for */
	PLACE_NUMA_NOT_FIT,       /* it would serve, but its NUMA node has too few such cards */
	PLACE_CARD_UUID_MISMATCH,
	PLACE_CARD_TIME_SLICING_EXHAUSTED,
	PLACE_QUOTA_NOT_FIT, /* of the pod's namespace: who knows of it says so, nothing here does */
	PLACE_CARD_INSUFFICIENT_MEMORY,
	PLACE_CARD_INSUFFICIENT_CORE,
	PLACE_EXCLUSIVE_CONFLICT,      /* it is asked for alone, and is in use */
	PLACE_COMPUTE_UNITS_EXHAUSTED, /* no compute is asked for, but all is given out */
	PLACE_ALLOCATED_INSUFFICIENT,  /* it would serve, but too few others do */
	PLACE_REASON_COUNT,
};

/* HAMi's word, such as "CardInsufficientMemory"; "" for PLACE_FITS. */
const char *place_reason_name(enum place_reason reason);

/* Is a card of that type wanted, by parts of the names of those that are (none: all) and of those that are not? */
bool place_is_type(struct place_words use, struct place_words nouse, const char *type);

/* By itself: PLACE_FITS, or the first reason that holds; NUMA and the number of cards left aside. */
enum place_reason place_check_card(const struct place_card *card,
				   const struct place_request *request);

/*
 * "3/8 CardInsufficientMemory, 5/8 CardNotHealth", in the order of the checks, cut at `size`; a node
 * with fewer cards than are asked for is "NodeInsufficientDevice". Returns what snprintf would.
 */
int place_reasons_text(const enum place_reason *reason, unsigned card_count,
		       const struct place_request *request, char *text, size_t size);
