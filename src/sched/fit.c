#include "sched/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB_BITS 20
#define MPCT 1000
#define ALL_CARDS (~UINT64_C(0))
#define SHARE_KIND "NVIDIA"
/* Of HAMi's plugin, which makes instances when it is asked to: not ours to give. */
#define MODE_DYNAMIC "mig"
/* A score of a link (place_link_score) is so many for each NVLink, and tens for the level. */
#define SCORE_OF_NVLINK 100
#define SCORE_OF_LEVEL 10

/* ---- a card by itself ---- */

static bool is_mode(const struct request *request, const char *mode)
{
	return strcmp(mode, MODE_DYNAMIC) != 0 && (!request->mode || strstr(request->mode, mode));
}

/* As place_check_card(), and in that order, with what src/place knows nothing of. */
static enum place_reason check_card(const struct place_card *card, const char *mode,
				    const struct request *request, const struct request_part *part)
{
	enum place_reason reason = place_check_card(card, &part->place);
	if (reason == PLACE_CARD_NOT_HEALTH || reason == PLACE_CARD_CORDONED)
		return reason;
	if (!is_mode(request, mode))
		return PLACE_CARD_TYPE_MISMATCH;
	if (request->is_mutex && card->slots_used &&
	    (reason == PLACE_FITS || reason > PLACE_CARD_TIME_SLICING_EXHAUSTED))
		return PLACE_EXCLUSIVE_CONFLICT;
	return reason;
}

/* ---- a part by itself ---- */

static unsigned most_of_one_numa(const struct place_card *card, unsigned count,
				 const enum place_reason *reason)
{
	unsigned most = 0;
	for (unsigned i = 0; i < count; i++) {
		unsigned same = 0;
		for (unsigned k = 0; k < count; k++)
			same += reason[k] == PLACE_FITS && card[k].numa == card[i].numa;
		most = same > most ? same : most;
	}
	return most;
}

/* Do enough cards serve it? Where not, those that would are told so as well. */
static bool look(const struct stock *stock, const struct place_card *card,
		 const struct request *request, const struct request_part *part,
		 enum place_reason *reason)
{
	unsigned able = 0, wanted = part->place.count;
	for (unsigned i = 0; i < stock->count; i++) {
		reason[i] = check_card(&card[i], stock->use[i].mode, request, part);
		able += reason[i] == PLACE_FITS;
	}
	bool is_numa = able >= wanted && part->place.numa_bind;
	if (able >= wanted && (!is_numa || most_of_one_numa(card, stock->count, reason) >= wanted))
		return true;
	for (unsigned i = 0; i < stock->count; i++)
		if (reason[i] == PLACE_FITS)
			reason[i] = is_numa ? PLACE_NUMA_NOT_FIT : PLACE_ALLOCATED_INSUFFICIENT;
	return false;
}

/* ---- cards for a part ---- */

static struct place_link link_of(const struct stock *stock, unsigned i, unsigned k)
{
	unsigned score = stock->score ? stock->score[i * stock->count + k] : 0;
	unsigned level = score % SCORE_OF_NVLINK / SCORE_OF_LEVEL;
	unsigned nvlinks = score / SCORE_OF_NVLINK;
	if (!stock->score)
		level = stock->card[i].numa == stock->card[k].numa ? PLACE_LEVEL_NODE
								   : PLACE_LEVEL_SYS;
	return (struct place_link){
		.nvlinks = (uint8_t)(nvlinks < UINT8_MAX ? nvlinks : UINT8_MAX),
		.level = level < PLACE_LEVEL_COUNT ? level : PLACE_LEVEL_PSB,
	};
}

/* The cards of `among` that the request may have, to be chosen from; their places in the stock in `at`. */
static void lay_out(const struct stock *stock, const struct place_card *card,
		    const struct request *request, uint64_t among, struct place_node *node,
		    unsigned at[PLACE_MAX_CARDS])
{
	unsigned n = 0;
	for (unsigned i = 0; i < stock->count; i++)
		if ((among >> i & 1) && is_mode(request, stock->use[i].mode) &&
		    !(request->is_mutex && card[i].slots_used)) {
			node->card[n] = card[i];
			at[n++] = i;
		}
	node->card_count = n;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			place_node_link(node, i, k, link_of(stock, at[i], at[k]));
}

static void take(struct place_card *card, const struct place_need *need)
{
	card->slots_used++;
	card->memory_used_bytes += need->memory_bytes;
	card->cores_used_mpct += need->cores_mpct;
}

/* Appends picks, and takes them of `card`. */
static bool place_part(const struct stock *stock, const struct request *request, unsigned part,
		       struct place_card *card, uint64_t among, struct fit_scratch *scratch)
{
	struct place_choice choice;
	unsigned at[PLACE_MAX_CARDS];
	lay_out(stock, card, request, among, &scratch->node, at);
	if (place_choose(&scratch->node, &request->part[part].place, &choice) < 0 ||
	    scratch->picks + choice.count > REQUEST_SHARES_MAX)
		return false;
	for (unsigned i = 0; i < choice.count; i++) {
		unsigned which = at[choice.card[i]];
		scratch->pick[scratch->picks++] = (struct fit_pick){ part, which, choice.need[i] };
		take(&card[which], &choice.need[i]);
	}
	return true;
}

/* What an init container finds: the node as it is, with the sidecars that began before it. */
static void lay_out_init(const struct stock *stock, const struct request *request,
			 const struct request_part *init, struct place_card *card,
			 const struct fit_scratch *scratch)
{
	memcpy(card, stock->card, stock->count * sizeof(*card));
	for (unsigned i = 0; i < scratch->picks; i++) {
		const struct request_part *p = &request->part[scratch->pick[i].part];
		if (p->is_sidecar && p->container < init->container)
			take(&card[scratch->pick[i].card], &scratch->pick[i].need);
	}
}

static int fail(const struct stock *stock, const struct place_card *card,
		const struct request *request, unsigned part, struct fit_reasons *ret)
{
	ret->part = &request->part[part];
	/* By themselves they may do, and yet not beside what the pod's others have taken of their NUMA node. */
	if (look(stock, card, request, ret->part, ret->reason))
		for (unsigned i = 0; i < stock->count; i++)
			if (ret->reason[i] == PLACE_FITS)
				ret->reason[i] = PLACE_ALLOCATED_INSUFFICIENT;
	return -ENOSPC;
}

static int place_all(const struct stock *stock, const struct request *request,
		     struct fit_scratch *scratch, struct fit_reasons *ret)
{
	struct place_card *card = scratch->card;
	uint64_t used = 0;
	scratch->picks = 0;
	memcpy(card, stock->card, stock->count * sizeof(*card));
	for (unsigned i = 0; i < request->count; i++)
		if (!request->part[i].is_init &&
		    !place_part(stock, request, i, card, ALL_CARDS, scratch))
			return fail(stock, card, request, i, ret);
	for (unsigned i = 0; i < scratch->picks; i++)
		used |= UINT64_C(1) << scratch->pick[i].card;
	for (unsigned i = 0; i < request->count; i++) {
		if (!request->part[i].is_init)
			continue;
		lay_out_init(stock, request, &request->part[i], card, scratch);
		if (!place_part(stock, request, i, card, used, scratch) &&
		    !place_part(stock, request, i, card, ALL_CARDS, scratch))
			return fail(stock, card, request, i, ret);
	}
	return 0;
}

/* ---- answers ---- */

/*
 * As many cards that serve any of the parts as all parts together want: whichever cards are taken for one part, enough that
 * nobody has touched are left for the next one.
 */
static bool is_ample(const struct stock *stock, const struct request *request)
{
	unsigned able = 0;
	uint64_t wanted = 0;
	for (size_t p = 0; p < request->count; p++) {
		wanted += request->part[p].place.count;
		if (request->part[p].place.numa_bind)
			return false;
	}
	for (unsigned i = 0; i < stock->count && able < wanted; i++) {
		bool serves = true;
		for (size_t p = 0; serves && p < request->count; p++)
			serves = check_card(&stock->card[i], stock->use[i].mode, request,
					    &request->part[p]) == PLACE_FITS;
		able += serves;
	}
	return able >= wanted;
}

bool fit_check(const struct stock *stock, const struct request *request,
	       struct fit_scratch *scratch, struct fit_reasons *ret)
{
	for (size_t i = 0; i < request->count; i++) {
		ret->part = &request->part[i];
		if (!look(stock, stock->card, request, ret->part, ret->reason))
			return false;
	}
	return request->count < 2 || is_ample(stock, request) ||
	       place_all(stock, request, scratch, ret) == 0;
}

bool fit_is_curable(const struct stock *stock, const struct fit_reasons *reasons)
{
	unsigned curable = 0;
	for (unsigned i = 0; i < stock->count; i++)
		switch (reasons->reason[i]) {
		case PLACE_CARD_NOT_HEALTH:
		case PLACE_CARD_CORDONED:
		case PLACE_CARD_TYPE_MISMATCH:
		case PLACE_CARD_UUID_MISMATCH: break;
		default: curable++;
		}
	return curable >= reasons->part->place.count;
}

int fit_reasons_text(const struct stock *stock, const struct fit_reasons *reasons, char *text,
		     size_t size)
{
	return place_reasons_text(reasons->reason, stock->count, &reasons->part->place, text, size);
}

static int make_shares(const struct stock *stock, const struct request *request,
		       const struct fit_scratch *scratch, struct kube_shares *ret)
{
	struct kube_shares shares = { .containers = request->containers };
	if (scratch->picks) {
		shares.share = calloc(scratch->picks, sizeof(*shares.share));
		if (!shares.share)
			return -ENOMEM;
	}
	for (unsigned p = 0; p < request->count; p++)
		for (unsigned i = 0; i < scratch->picks; i++) {
			const struct fit_pick *pick = &scratch->pick[i];
			if (pick->part != p)
				continue;
			struct kube_share *s = &shares.share[shares.count++];
			s->container = request->part[p].container;
			strcpy(s->kind, SHARE_KIND);
			strcpy(s->card, stock->card[pick->card].uuid);
			s->memory_mib = pick->need.memory_bytes >> MIB_BITS;
			s->cores_pct = pick->need.cores_mpct / MPCT;
		}
	*ret = shares;
	return 0;
}

int fit_choose(const struct stock *stock, const struct request *request,
	       struct fit_scratch *scratch, struct kube_shares *ret, struct fit_reasons *ret_reasons)
{
	int r = place_all(stock, request, scratch, ret_reasons);
	return r < 0 ? r : make_shares(stock, request, scratch, ret);
}
