/*
 * Decides whether a pod fits a node's GPUs (cards), and which of them it gets. Pure, except for the scratch memory `struct
 * fit`, which is too large for a stack. Use a struct fit from one thread at a time.
 *
 * A part is one container's request. Parts get cards one after the other, containers that run together first; each part sees
 * the cards as the earlier parts left them. If there are only two such containers, the cards are computed instead of tried, so
 * a solution is found if there is one (is_pair() in fit.c). An init container ends before the main containers begin, so it sees
 * the node without them, but with the sidecars started before it. It gets the same cards as the main containers, if these
 * suffice. Such a card is charged only the larger of the two shares.
 */
#pragma once

#include <stdbool.h>

#include "kube/hami/shares.h"
#include "policy/placement/choose_cards.h"
#include "scheduler/fit/fit_quota.h"
#include "scheduler/opportunistic/opportunistic.h"
#include "scheduler/request/pod_request.h"
#include "scheduler/inventory/inventory.h"

struct fit_pick {
	unsigned part;
	unsigned card;
	struct place_need need;
};

/* Cache: whether the request accepts cards of a type (or mode). Valid until the request or the cards change. */
#define FIT_MEMO_STRINGS 8
struct fit_memo {
	unsigned count;
	const char *string[FIT_MEMO_STRINGS]; /* interned strings of cards */
	bool is_wanted[FIT_MEMO_STRINGS];
};

struct fit {
	/* set by the caller; measured use older than USE_FRESH_NS at this time does not count */
	uint64_t now_ns;
	const struct request *request;
	struct fit_memo types, modes;
	/* of the card that was checked last: the next card mostly has the same */
	const char *type, *mode;
	bool is_wanted; /* for `type` and `mode`; invalid while `type` is NULL */
	struct fit_quota quota;
	/* Scratch memory. node: the cards that may serve one part; card: all cards, charged with the parts placed so far. */
	struct place_node node;
	struct place_card card[PLACE_MAX_CARDS];
	struct place_card seen[PLACE_MAX_CARDS]; /* the cards as an opportunistic pod sees them */
	uint64_t serves[REQUEST_SHARES_MAX];     /* per part: bit i is set if card i serves it */
	uint64_t both; /* of two parts: bit i is set if card i serves both at once */
	struct fit_pick pick[REQUEST_SHARES_MAX];
	unsigned picks;
	/* shares of the chosen cards, as they would be charged */
	struct inventory_share share[REQUEST_SHARES_MAX];
};

/* Sets the request for the next calls; it must stay valid. Call again after a change of cards. */
void fit_begin(struct fit *fit, const struct request *request);
/* Clears the caches. Call when interned strings of cards were freed: a new one may have the same address. */
void fit_clear_caches(struct fit *fit);
/* Sets the namespace's quota, and how much of it other pods use. Call after fit_begin(), which removes the quota. */
void fit_set_quota(struct fit *fit, const struct quota_limits *limits,
		   const struct quota_amounts *used);
/* Sets the histogram of frequent requests, for which the policy "fragmentation" keeps room. The histogram must stay valid. */
void fit_set_histogram(struct fit *fit, const struct place_histogram *histogram);

/*
 * Returns the cards as the request sees them: for an opportunistic pod, with compute counted by measured use; for others,
 * `inventory` itself. *ret is scratch memory, valid until the next call. fit_check() and fit_choose() call this themselves.
 */
const struct inventory *fit_visible_cards(struct fit *fit, const struct inventory *inventory,
					  struct inventory *ret);
/* Returns the figures of card i that determine how much compute is free for an opportunistic pod. */
struct opportunistic_card fit_opportunistic_card(const struct fit *fit,
						 const struct inventory *inventory, unsigned i);

/* Returns why card i can't serve the part, or PLACE_FITS. `card` may have other shares charged than the inventory. */
enum place_reason fit_check_card(struct fit *fit, const struct inventory *inventory,
				 const struct place_card *card, unsigned i,
				 const struct place_request *part);
/* Whether card i passes the checks that fit_check_card() makes besides place_check_card(). */
bool fit_may_serve(struct fit *fit, const struct inventory *inventory,
		   const struct place_card *card, unsigned i, const struct place_request *part);

struct fit_reasons {
	const struct request_part *part;           /* the first part that does not fit */
	enum place_reason reason[PLACE_MAX_CARDS]; /* per card */
	bool is_beyond_quota;                      /* the request exceeds the whole quota */
};

/* A request without parts always fits. If the request does not fit, *ret has the reasons; else it has no meaning. */
bool fit_check(struct fit *fit, const struct inventory *inventory, struct fit_reasons *ret);

/* For each card alone: why it does not serve the part, or PLACE_FITS. */
void fit_each_card(struct fit *fit, const struct inventory *inventory,
		   const struct request_part *part, enum place_reason ret[PLACE_MAX_CARDS]);

/* Whether evictions could make the request fit. They cannot remove reasons such as a wrong type or bad health. */
bool fit_is_resolvable(const struct inventory *inventory, const struct fit_reasons *reasons);

enum inventory_stage fit_stage(const struct request_part *part);

int fit_reasons_text(const struct inventory *inventory, const struct fit_reasons *reasons,
		     char *text, size_t size);

/* Returns 0, -ENOSPC with the reasons in *ret_reasons, or -ENOMEM. Free *ret with shares_free(). */
int fit_choose(struct fit *fit, const struct inventory *inventory, struct kube_shares *ret,
	       struct fit_reasons *ret_reasons);
