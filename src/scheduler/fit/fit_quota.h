/*
 * Decides whether the shares that a pod would get exceed what is left of its namespace's quota. The request alone usually
 * decides that, before any node is checked. The answer depends on the cards in three cases: memory in percent, whole cards, and
 * init containers, which may or may not share cards with other containers. Pure; internal to fit.c.
 */
#pragma once

#include "scheduler/request/quota.h"
#include "scheduler/request/pod_request.h"

enum fit_quota_state {
	FIT_QUOTA_KEPT,    /* within the quota on any cards, or there is no quota */
	FIT_QUOTA_PASSED,  /* beyond the quota on any cards */
	FIT_QUOTA_BY_CARD, /* depends on the card */
};

struct fit_quota {
	enum fit_quota_state state;
	bool is_beyond; /* the request exceeds the whole quota, so it would not fit even if all other pods ended */
	bool has_init; /* the request has init containers, which may share cards with others */
	bool is_over;  /* cards were found, but their sum exceeds the quota */
	struct quota_limits left;
	struct quota_amounts lasting; /* lower bound of what all parts that run together use of the quota */
	struct quota_amounts
		beside; /* lower bound of the pod's use of the quota, without one share of the current part */
};

/* Resets `quota` to "no quota". */
void fit_quota_clear(struct fit_quota *quota);
/* Sets the quota for a request. `used` is the usage of the namespace without this pod. */
void fit_quota_set(struct fit_quota *quota, const struct request *request,
		   const struct quota_limits *limits, const struct quota_amounts *used);
/* Sets the current part: the one for which fit_quota_refuses() checks cards from now on. */
void fit_quota_look_at(struct fit_quota *quota, const struct request_part *part);

/* Returns the amounts that a share of a card is charged against a quota. */
struct quota_amounts fit_quota_of(const struct place_need *need);

/* Returns true if the quota excludes this card, whichever other cards are chosen. */
static inline bool fit_quota_refuses(const struct fit_quota *quota, const struct place_card *card,
				     const struct place_request *request)
{
	if (quota->state != FIT_QUOTA_BY_CARD)
		return quota->state == FIT_QUOTA_PASSED;
	const struct place_need need = place_need(card, request);
	struct quota_amounts sum = fit_quota_of(&need);
	quota_add(&sum, &quota->beside);
	return !quota_allows(&quota->left, &sum);
}
