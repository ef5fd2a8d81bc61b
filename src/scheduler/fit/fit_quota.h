/*
 * Whether what a pod would get of a node's cards is more than is left of its namespace's quota. Mostly that is known before
 * any node is looked at, from what is asked; a part of a card in percent, a whole card, and an init container, which may
 * share the cards of others or not, depend on the cards. Pure; of fit.c.
 */
#pragma once

#include "scheduler/request/quota.h"
#include "scheduler/request/request.h"

enum fit_quota_state {
	FIT_QUOTA_KEPT,    /* whichever cards it gets; also where there is no quota */
	FIT_QUOTA_PASSED,  /* whichever cards it gets */
	FIT_QUOTA_BY_CARD, /* to be looked at for each */
};

struct fit_quota {
	enum fit_quota_state state;
	bool is_beyond; /* the quota itself is less than what is asked: nobody's end would help */
	bool has_init;  /* containers that may share the cards of others */
	bool is_over;   /* cards were found, and together they were too much */
	struct quota_limits left;
	struct quota_amounts lasting; /* at least: of all parts that run together */
	struct quota_amounts
		beside; /* at least: of the pod's, beside one share of the part that is looked at */
};

/* No quota. */
void fit_quota_clear(struct fit_quota *quota);
/* `used`: by others than the pod. */
void fit_quota_set(struct fit_quota *quota, const struct request *request,
		   const struct quota_limits *limits, const struct quota_amounts *used);
/* Cards are looked at for that part from now on. */
void fit_quota_look_at(struct fit_quota *quota, const struct request_part *part);

/* As a share of a card is charged. */
struct quota_amounts fit_quota_of(const struct place_need *need);

/* Not this card, whichever others there are. */
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
