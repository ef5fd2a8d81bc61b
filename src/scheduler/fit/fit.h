/*
 * Decides whether a pod fits a node's cards, and which cards it gets. Pure, except for the scratch memory `struct fit`, which
 * is too large for a stack. Use a struct fit from one thread at a time.
 *
 * A part is one container's request. Parts get cards one after the other, containers that run together first; each part sees
 * the cards as the earlier parts left them. If there are only two such containers, the cards are computed instead of tried
 * (is_pair() in fit.c has the conditions), so that a solution is found if there is one. An init container ends before the main
 * containers begin. So it sees the node without them, but with the sidecars started before it. It gets the same cards
 * as the main containers, if these cards suffice. Such a card is charged only the larger of the two shares.
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

/* Cache: for each type (or mode) of cards, whether the request accepts it. Valid until the request or the cards change. */
#define FIT_MEMO_STRINGS 8
struct fit_memo {
	unsigned count;
	const char *string[FIT_MEMO_STRINGS]; /* interned strings of cards */
	bool is_wanted[FIT_MEMO_STRINGS];
};

struct fit {
	/* set by the caller; a measured use that is older than USE_FRESH_NS at this time does not count */
	uint64_t now_ns;
	const struct request *request;
	struct fit_memo types, modes;
	/* type and mode of the card that was checked last: the next card mostly has the same type and mode */
	const char *type, *mode;
	bool is_wanted; /* the answer for `type` and `mode`; invalid while `type` is NULL */
	struct fit_quota quota;
	/*
	 * Scratch memory for choosing cards. node: the cards that may serve one part; card: all cards, charged with the parts
	 * placed so far.
	 */
	struct place_node node;
	struct place_card card[PLACE_MAX_CARDS];
	struct place_card seen[PLACE_MAX_CARDS]; /* the cards as an opportunistic pod sees them */
	uint64_t serves[REQUEST_SHARES_MAX];     /* per part: bit i is set if card i serves it */
	uint64_t both; /* of two parts: bit i is set if card i serves both at once */
	struct fit_pick pick[REQUEST_SHARES_MAX];
	unsigned picks;
	/* the shares of the chosen cards, as they would be charged */
	struct inventory_share share[REQUEST_SHARES_MAX];
};

/* Sets the request for the next calls; it must stay valid. Call again after a change of cards. */
void fit_begin(struct fit *fit, const struct request *request);
/* Clears the caches. Call when interned strings of cards were freed: a new one may have the same address. */
void fit_clear_caches(struct fit *fit);
/*
 * Sets the quota of the pod's namespace, and what the namespace's other pods use of it. Call after fit_begin(); without this
 * call there is no quota.
 */
void fit_set_quota(struct fit *fit, const struct quota_limits *limits,
		   const struct quota_amounts *used);
/*
 * Sets the histogram of frequent requests, for which the policy "fragmentation" keeps room when it chooses cards. The histogram
 * must stay valid.
 */
void fit_set_histogram(struct fit *fit, const struct place_histogram *histogram);

/*
 * Returns the cards as the request sees them. For an opportunistic pod (opportunistic.h), their compute is counted by measured
 * use; for others, returns `inventory` itself. *ret is scratch memory, valid until the next call. fit_check() and fit_choose()
 * do this themselves.
 */
const struct inventory *fit_visible_cards(struct fit *fit, const struct inventory *inventory,
					  struct inventory *ret);
/* Returns the figures of card i that determine how much compute is free for an opportunistic pod. */
struct opportunistic_card fit_opportunistic_card(const struct fit *fit,
						 const struct inventory *inventory, unsigned i);

/*
 * Returns why card i cannot serve a share of this part, or PLACE_FITS. `card` is the array of the node's cards, perhaps with
 * other shares charged than in the inventory.
 */
enum place_reason fit_check_card(struct fit *fit, const struct inventory *inventory,
				 const struct place_card *card, unsigned i,
				 const struct place_request *part);
/* Returns whether card i passes those checks of fit_check_card() that place_check_card() does not make. */
bool fit_may_serve(struct fit *fit, const struct inventory *inventory,
		   const struct place_card *card, unsigned i, const struct place_request *part);

struct fit_reasons {
	const struct request_part *part;           /* the first part that does not fit */
	enum place_reason reason[PLACE_MAX_CARDS]; /* per card */
	bool is_beyond_quota;                      /* the request exceeds the whole quota */
};

/*
 * Whether the request fits. A request without parts always fits. If the request does not fit, *ret has the reasons; otherwise
 * *ret has no meaning.
 */
bool fit_check(struct fit *fit, const struct inventory *inventory, struct fit_reasons *ret);

/* For each card alone: why it does not serve the part, or PLACE_FITS. */
void fit_each_card(struct fit *fit, const struct inventory *inventory,
		   const struct request_part *part, enum place_reason ret[PLACE_MAX_CARDS]);

/*
 * Returns true if evictions could make the request fit: enough cards fit already, or do not fit for a reason that evictions can
 * remove. They cannot remove a wrong type or bad health.
 */
bool fit_is_resolvable(const struct inventory *inventory, const struct fit_reasons *reasons);

enum inventory_stage fit_stage(const struct request_part *part);

int fit_reasons_text(const struct inventory *inventory, const struct fit_reasons *reasons,
		     char *text, size_t size);

/*
 * Chooses cards for the request of fit_begin(). Returns 0, -ENOSPC with the reasons in *ret_reasons, or -ENOMEM. Free *ret with
 * shares_free().
 */
int fit_choose(struct fit *fit, const struct inventory *inventory, struct kube_shares *ret,
	       struct fit_reasons *ret_reasons);
