/*
 * Does a pod fit a node's cards, and which does it take. Pure, but for what a caller lends, which is too large for a stack; one
 * thread at a time.
 *
 * Containers are given their cards one after the other: those that run together first, so that each finds what the others
 * have left. Of two, each leaves the other the cards that it can't do without: all that can be is found. An init container has
 * ended before they begin: it finds the node as it is now, but for the sidecars before it, and goes on cards of theirs where
 * those suffice, which then carry the more of both.
 */
#pragma once

#include <stdbool.h>

#include "kube/hami/shares.h"
#include "policy/placement/choose.h"
#include "scheduler/fit/fit_quota.h"
#include "scheduler/opportunistic/opportunistic.h"
#include "scheduler/request/request.h"
#include "scheduler/inventory/inventory.h"

struct fit_pick {
	unsigned part; /* of the request */
	unsigned card; /* of the inventory */
	struct place_need need;
};

/* Words of cards that were looked at before: what was found then holds for as long as the cards stay as they are. */
#define FIT_MEMO_WORDS 8
struct fit_memo {
	unsigned count;
	const char *word[FIT_MEMO_WORDS]; /* of cards */
	bool is_wanted[FIT_MEMO_WORDS];
};

struct fit {
	uint64_t now_ns; /* the caller's: by what is known of cards' use */
	const struct request *request;
	struct fit_memo types, modes;
	const char *type,
		*mode;  /* words of the card that was looked at last: most others have the same */
	bool is_wanted; /* what was found of them; `type` NULL: nothing yet */
	struct fit_quota quota;
	/* What is laid out to be chosen from, and what came of it. */
	struct place_node node;
	struct place_card card[PLACE_MAX_CARDS];
	struct place_card seen[PLACE_MAX_CARDS]; /* by who fills what others leave */
	uint64_t serves[REQUEST_SHARES_MAX];     /* the cards that serve each part, a bit each */
	uint64_t both;                           /* of two parts: those that serve both at a time */
	struct fit_pick pick[REQUEST_SHARES_MAX];
	unsigned picks;
	struct inventory_share share[REQUEST_SHARES_MAX]; /* what they would be charged */
};

/* The request that all is about from now on; valid as long. To be called anew after any change of a node's cards. */
void fit_begin(struct fit *fit, const struct request *request);
/* Words of cards have been given back: another may be where one of them was. */
void fit_words_gone(struct fit *fit);
/* After that: its namespace may have so much, and has that without it. Without this call there is no quota. */
void fit_hold_to(struct fit *fit, const struct quota_limits *limits,
		 const struct quota_amounts *used);
/* What else is asked for, to choose cards by from now on; valid as long. */
void fit_set_histogram(struct fit *fit, const struct place_histogram *histogram);

/*
 * A node's cards as the request finds them: for an opportunistic pod (opportunistic.h) their time is taken by use, for all others they are as they
 * are. *ret is room for them, valid until the next call; fit_check() and fit_choose() look through this by themselves.
 */
const struct inventory *fit_see(struct fit *fit, const struct inventory *inventory,
				struct inventory *ret);
/* What an opportunistic pod's time on card i is judged by. */
struct opportunistic_card fit_opportunistic_card(const struct fit *fit,
						 const struct inventory *inventory, unsigned i);

/*
 * Of card[i], which may be used otherwise than in the inventory: why it does not serve a share of a part of the fit's request, or
 * PLACE_FITS.
 */
enum place_reason fit_check_card(struct fit *fit, const struct inventory *inventory,
				 const struct place_card *card, unsigned i,
				 const struct place_request *part);

/* Why not. */
struct fit_reasons {
	const struct request_part *part;           /* the first that does not fit */
	enum place_reason reason[PLACE_MAX_CARDS]; /* of each card */
	bool is_beyond_quota;                      /* with nothing used of it, too */
};

/* Does it? A request of no part does. *ret is written where it does not. */
bool fit_check(struct fit *fit, const struct inventory *inventory, struct fit_reasons *ret);

/* Of each card by itself why it does not serve that part; PLACE_FITS: it does. To be told of a node that fits. */
void fit_each_card(struct fit *fit, const struct inventory *inventory,
		   const struct request_part *part, enum place_reason ret[PLACE_MAX_CARDS]);

/* Would the end of others help, as far as the cards themselves tell? */
bool fit_is_curable(const struct inventory *inventory, const struct fit_reasons *reasons);

/* When a part of the request runs. */
enum inventory_stage fit_stage(const struct request_part *part);

/* As place_reasons_text(). */
int fit_reasons_text(const struct inventory *inventory, const struct fit_reasons *reasons,
		     char *text, size_t size);

/*
 * The shares of cards that it gets. -ENOSPC: it does not fit, and *ret_reasons is written; -ENOMEM. *ret is to be freed by
 * shares_free().
 */
int fit_choose(struct fit *fit, const struct inventory *inventory, struct kube_shares *ret,
	       struct fit_reasons *ret_reasons);
