/*
 * Decides whether a pod fits a node's cards and which cards the pod gets. Pure, except for the scratch memory `struct fit`,
 * which the caller provides because it is too large for a stack. Use a `struct fit` from one thread at a time.
 *
 * Containers get their cards one after the other. The containers that run together come first, and each sees what the earlier
 * ones left. With two such containers, each leaves the other the cards that the other needs, so any solution is found. An init
 * container ends before the main containers begin. So an init container sees the node without them, but with the sidecars
 * started before it. It reuses the main containers' cards if those suffice; such a card is charged the larger of both shares.
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
	unsigned part; /* index of the part in the request */
	unsigned card; /* index of the card in the inventory */
	struct place_need need;
};

/* Caches whether the request wants cards with a string (a type, or a mode). Valid as long as the cards do not change. */
#define FIT_MEMO_WORDS 8
struct fit_memo {
	unsigned count;
	const char *word[FIT_MEMO_WORDS]; /* interned strings of cards */
	bool is_wanted[FIT_MEMO_WORDS];
};

struct fit {
	uint64_t now_ns; /* set by the caller; used to judge the age of measured use */
	const struct request *request;
	struct fit_memo types, modes;
	const char *type,
		*mode; /* strings of the last card checked; those of the next card are mostly equal */
	bool is_wanted; /* answer for `type` and `mode`; unset while `type` is NULL */
	struct fit_quota quota;
	/* Candidates for a choice, and its results. */
	struct place_node node;
	struct place_card card[PLACE_MAX_CARDS];
	struct place_card seen[PLACE_MAX_CARDS]; /* the cards as an opportunistic pod sees them */
	uint64_t serves[REQUEST_SHARES_MAX]; /* per part: bit i is set if card i serves the part */
	uint64_t both; /* with two parts: bit i is set if card i serves both at once */
	struct fit_pick pick[REQUEST_SHARES_MAX];
	unsigned picks;
	struct inventory_share share[REQUEST_SHARES_MAX]; /* what the picks would be charged */
};

/* Sets the request for the calls that follow; `request` must stay valid. Call again after any change of a node's cards. */
void fit_begin(struct fit *fit, const struct request *request);
/* Clears the caches. Call when interned strings of cards were freed, because a new string may reuse their address. */
void fit_words_gone(struct fit *fit);
/* Sets the namespace's quota and its usage without this pod. Call after fit_begin(); without this call there is no quota. */
void fit_hold_to(struct fit *fit, const struct quota_limits *limits,
		 const struct quota_amounts *used);
/* Sets the histogram of other requests by which cards are chosen; `histogram` must stay valid. */
void fit_set_histogram(struct fit *fit, const struct place_histogram *histogram);

/*
 * Returns the node's cards as the request sees them. An opportunistic pod (opportunistic.h) sees compute by measured use; for
 * other pods, returns `inventory` itself. *ret is scratch memory for the result, valid until the next call. fit_check()
 * and fit_choose() do this themselves.
 */
const struct inventory *fit_see(struct fit *fit, const struct inventory *inventory,
				struct inventory *ret);
/* Returns the figures of card i that decide how much compute an opportunistic pod may have there. */
struct opportunistic_card fit_opportunistic_card(const struct fit *fit,
						 const struct inventory *inventory, unsigned i);

/*
 * Returns why card i cannot serve a share of this part of the request, or PLACE_FITS if the card can. `card` may show another use
 * of card i than the inventory does.
 */
enum place_reason fit_check_card(struct fit *fit, const struct inventory *inventory,
				 const struct place_card *card, unsigned i,
				 const struct place_request *part);

/* Why a request does not fit. */
struct fit_reasons {
	const struct request_part *part;           /* the first part that does not fit */
	enum place_reason reason[PLACE_MAX_CARDS]; /* per card */
	bool is_beyond_quota; /* the request exceeds the quota even if nothing else used the quota */
};

/*
 * Returns true if the request fits; a request without parts always fits. If the request does not fit, *ret gets the reasons. On
 * success, *ret may be overwritten in part and means nothing.
 */
bool fit_check(struct fit *fit, const struct inventory *inventory, struct fit_reasons *ret);

/* Writes for each card alone why the card does not serve that part, or PLACE_FITS. Used to explain a node that fits. */
void fit_each_card(struct fit *fit, const struct inventory *inventory,
		   const struct request_part *part, enum place_reason ret[PLACE_MAX_CARDS]);

/* Returns true if the request could fit once other pods end, as far as the cards alone can tell. */
bool fit_is_curable(const struct inventory *inventory, const struct fit_reasons *reasons);

/* Returns the stage in which a part of the request runs: init, sidecar or main. */
enum inventory_stage fit_stage(const struct request_part *part);

/* Writes the reasons as text; parameters and result as for place_reasons_text(). */
int fit_reasons_text(const struct inventory *inventory, const struct fit_reasons *reasons,
		     char *text, size_t size);

/*
 * Chooses the shares of cards for the request. On success returns 0; free *ret with shares_free(). If the request does not
 * fit, returns -ENOSPC and writes *ret_reasons. Returns -ENOMEM if memory runs out.
 */
int fit_choose(struct fit *fit, const struct inventory *inventory, struct kube_shares *ret,
	       struct fit_reasons *ret_reasons);
