/*
 * Decides whether a pod's shares exceed what is left of its namespace's quota. The GPUs (cards) matter in three cases: memory
 * in percent, whole cards, and init containers, which may share cards with other containers. No I/O. Internal to fit*.c.
 */
#pragma once

#include "scheduler/request/quota.h"
#include "scheduler/request/pod_request.h"

enum fit_quota_state {
	FIT_QUOTA_WITHIN,   /* within the quota on any cards, or there is no quota */
	FIT_QUOTA_EXCEEDED, /* beyond the quota on any cards */
	FIT_QUOTA_DEPENDS_ON_CARD,
};

struct fit_quota {
	enum fit_quota_state state;
	bool is_beyond;   /* would not fit even if all other pods ended */
	bool has_init;    /* has init containers */
	bool is_exceeded; /* cards were found, but together they exceed the quota */
	struct quota_limits left;
	struct quota_amounts lasting; /* lower bound of what containers that run together use */
	/*
	 * lower bound of the quota that the pod's other shares use at the same time as one share of the part set by
	 * fit_quota_set_part()
	 */
	struct quota_amounts beside;
};

void fit_quota_clear(struct fit_quota *quota);
/* `used` is what the namespace's other pods use of the quota. */
void fit_quota_set(struct fit_quota *quota, const struct request *request,
		   const struct quota_limits *limits, const struct quota_amounts *used);
/* Sets the part (one container's request) for which fit_quota_refuses() checks cards from now on. */
void fit_quota_set_part(struct fit_quota *quota, const struct request_part *part);

struct quota_amounts fit_quota_of(const struct place_need *need);

/* Whether the quota excludes this card, whatever the pod's other cards are. */
static inline bool fit_quota_refuses(const struct fit_quota *quota, const struct place_card *card,
				     const struct place_request *request)
{
	if (quota->state != FIT_QUOTA_DEPENDS_ON_CARD)
		return quota->state == FIT_QUOTA_EXCEEDED;
	const struct place_need need = place_need(card, request);
	struct quota_amounts sum = fit_quota_of(&need);
	quota_add(&sum, &quota->beside);
	return !quota_allows(&quota->left, &sum);
}
