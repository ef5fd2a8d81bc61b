#include "scheduler/fit/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL_CARDS (~UINT64_C(0))
#define SHARE_KIND "NVIDIA"
/* A link's score (place_link_score()) is 100 for each NVLink, plus 10 for each level. */
#define SCORE_OF_NVLINK 100
#define SCORE_OF_LEVEL 10

static bool quota_depends_on_card(const struct fit *fit)
{
	return fit->quota.state == FIT_QUOTA_DEPENDS_ON_CARD;
}

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

/* Whether enough cards serve the part. If not, reason[i] says why card i does not, or that too few cards do. */
static bool check_part(struct fit *fit, const struct inventory *inventory,
		       const struct place_card *card, const struct request_part *part,
		       enum place_reason *reason)
{
	unsigned able = 0, wanted = part->place.count;
	bool has_numa = part->place.numa_bind, is_any = !has_numa && !quota_depends_on_card(fit);
	fit_quota_set_part(&fit->quota, part);
	for (unsigned i = 0; i < inventory->count && !(is_any && able == wanted); i++) {
		reason[i] = fit_check_card(fit, inventory, card, i, &part->place);
		able += reason[i] == PLACE_FITS;
	}
	bool is_numa = able >= wanted && has_numa;
	if (able >= wanted &&
	    (!is_numa || most_of_one_numa(card, inventory->count, reason) >= wanted))
		return true;
	for (unsigned i = 0; i < inventory->count; i++)
		if (reason[i] == PLACE_FITS)
			reason[i] = is_numa ? PLACE_NUMA_NOT_FIT : PLACE_ALLOCATED_INSUFFICIENT;
	return false;
}

static struct place_link link_of(const struct inventory *inventory, unsigned i, unsigned k)
{
	unsigned score = inventory->score ? inventory->score[i * inventory->count + k] : 0;
	unsigned level = score % SCORE_OF_NVLINK / SCORE_OF_LEVEL;
	unsigned nvlinks = score / SCORE_OF_NVLINK;
	if (!inventory->score)
		level = inventory->card[i].numa == inventory->card[k].numa ? PLACE_LEVEL_NODE
									   : PLACE_LEVEL_SYS;
	return (struct place_link){
		.nvlinks = (uint8_t)(nvlinks < UINT8_MAX ? nvlinks : UINT8_MAX),
		.level = level < PLACE_LEVEL_COUNT ? level : PLACE_LEVEL_PSB,
	};
}

/* Fills fit->node with the cards of `among` (bit i: card i) that may serve the part. at[k] is the k-th one's index. */
static void collect_cards(struct fit *fit, const struct inventory *inventory,
			  const struct request_part *part, const struct place_card *card,
			  uint64_t among, unsigned at[PLACE_MAX_CARDS])
{
	struct place_node *node = &fit->node;
	unsigned n = 0;
	fit_quota_set_part(&fit->quota, part);
	for (unsigned i = 0; i < inventory->count; i++)
		if ((among >> i & 1) && fit_may_serve(fit, inventory, card, i, &part->place)) {
			node->card[n] = card[i];
			at[n++] = i;
		}
	node->card_count = n;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			place_node_link(node, i, k, link_of(inventory, at[i], at[k]));
}

static void charge_card(struct place_card *card, const struct place_need *need)
{
	card->slots_used++;
	card->memory_used_bytes += need->memory_bytes;
	card->cores_used_mpct += need->cores_mpct;
}

/* Picks cards of `among` (bit i: card i) for a part, and charges the part to them in `card`; false if it does not fit. */
typedef bool pick_fn(struct fit *fit, const struct inventory *inventory, unsigned part,
		     struct place_card *card, uint64_t among);

static void add_pick(struct fit *fit, unsigned part, struct place_card *card, unsigned which,
		     struct place_need need)
{
	fit->pick[fit->picks++] = (struct fit_pick){ part, which, need };
	charge_card(&card[which], &need);
}

/* Picks the cards that the request's policy ranks first. */
static bool place_part(struct fit *fit, const struct inventory *inventory, unsigned part,
		       struct place_card *card, uint64_t among)
{
	struct place_choice choice;
	unsigned at[PLACE_MAX_CARDS];
	const struct request_part *p = &fit->request->part[part];
	collect_cards(fit, inventory, p, card, among, at);
	if (place_choose(&fit->node, &p->place, &choice) < 0 ||
	    fit->picks + choice.count > REQUEST_SHARES_MAX)
		return false;
	for (unsigned i = 0; i < choice.count; i++)
		add_pick(fit, part, card, at[choice.card[i]], choice.need[i]);
	return true;
}

/* Returns card i's position among the `n` cards in `found`, sorted by the memory that the request would take of each. */
static unsigned rank_by_need(const struct place_card *card, const unsigned *found, unsigned n,
			     unsigned i, const struct place_request *r)
{
	uint64_t bytes = place_need(&card[i], r).memory_bytes;
	while (n && place_need(&card[found[n - 1]], r).memory_bytes > bytes)
		n--;
	return n;
}

/*
 * Picks the first cards that serve the part or, if the quota depends on the cards, those that use least of it. Faster than
 * place_part(), and a fallback where the policy's best cards leave none for the next part. False for NUMA binding.
 */
static bool pick_part(struct fit *fit, const struct inventory *inventory, unsigned part,
		      struct place_card *card, uint64_t among)
{
	const struct place_request *r = &fit->request->part[part].place;
	unsigned found[PLACE_MAX_CARDS], n = 0;
	uint64_t chosen = 0;
	if (r->numa_bind || fit->picks + r->count > REQUEST_SHARES_MAX)
		return false;
	fit_quota_set_part(&fit->quota, &fit->request->part[part]);
	for (unsigned i = 0; i < inventory->count && (n < r->count || quota_depends_on_card(fit));
	     i++) {
		if (!(among >> i & 1) || fit_check_card(fit, inventory, card, i, r) != PLACE_FITS)
			continue;
		unsigned at = quota_depends_on_card(fit) ? rank_by_need(card, found, n, i, r) : n;
		memmove(&found[at + 1], &found[at], (n++ - at) * sizeof(found[0]));
		found[at] = i;
	}
	if (n < r->count)
		return false;
	for (unsigned i = 0; i < r->count; i++)
		chosen |= UINT64_C(1) << found[i];
	for (unsigned i = 0; i < inventory->count; i++)
		if (chosen >> i & 1)
			add_pick(fit, part, card, i, place_need(&card[i], r));
	return true;
}

enum inventory_stage fit_stage(const struct request_part *part)
{
	return part->is_init      ? INVENTORY_INIT
	       : part->is_sidecar ? INVENTORY_SIDECAR
				  : INVENTORY_APP;
}

static bool is_in_quota(struct fit *fit, const struct inventory *inventory)
{
	const struct request *request = fit->request;
	struct inventory_shares shares = { .share = fit->share };
	if (!quota_depends_on_card(fit))
		return true;
	for (unsigned p = 0; p < request->count; p++)
		for (unsigned i = 0; i < fit->picks; i++) {
			const struct fit_pick *pick = &fit->pick[i];
			if (pick->part != p)
				continue;
			shares.share[shares.count++] = (struct inventory_share){
				.card = inventory->card[pick->card].uuid,
				.memory_mib = (uint32_t)(pick->need.memory_bytes >> MIB_BITS),
				.cores_pct = pick->need.cores_mpct / MPCT,
				.container = (uint16_t)request->part[p].container,
				.stage = (uint8_t)fit_stage(&request->part[p]),
			};
		}
	const struct quota_amounts sum = inventory_shares_sum(&shares);
	return quota_allows(&fit->quota.left, &sum);
}

static void drop_picks(struct fit *fit, unsigned from)
{
	for (; fit->picks > from; fit->picks--) {
		const struct fit_pick *pick = &fit->pick[fit->picks - 1];
		struct place_card *card = &fit->card[pick->card];
		card->slots_used--;
		card->memory_used_bytes -= pick->need.memory_bytes;
		card->cores_used_mpct -= pick->need.cores_mpct;
	}
}

/* Picks cards by `pick`. If they exceed the quota, uses pick_part(), whose cards use the least of it. */
static bool pick_in_quota(struct fit *fit, const struct inventory *inventory, unsigned part,
			  pick_fn *pick, uint64_t among)
{
	const unsigned before = fit->picks;
	for (;; pick = pick_part) {
		if (!pick(fit, inventory, part, fit->card, among))
			return false;
		if (is_in_quota(fit, inventory))
			return true;
		drop_picks(fit, before);
		fit->quota.is_exceeded = true;
		if (pick == pick_part)
			return false;
	}
}

/* Sets fit->card to the cards as `init` finds them: charged with the sidecars that started before it. */
static void set_init_cards(struct fit *fit, const struct inventory *inventory,
			   const struct request_part *init)
{
	memcpy(fit->card, inventory->card, inventory->count * sizeof(*fit->card));
	for (unsigned i = 0; i < fit->picks; i++) {
		const struct request_part *p = &fit->request->part[fit->pick[i].part];
		if (p->is_sidecar && p->container < init->container)
			charge_card(&fit->card[fit->pick[i].card], &fit->pick[i].need);
	}
}

static int fail(struct fit *fit, const struct inventory *inventory, unsigned part,
		struct fit_reasons *ret)
{
	ret->part = &fit->request->part[part];
	memset(ret->reason, PLACE_FITS, sizeof(ret->reason));
	check_part(fit, inventory, fit->card, ret->part, ret->reason);
	for (unsigned i = 0; fit->quota.is_exceeded && i < inventory->count; i++)
		if (ret->reason[i] == PLACE_FITS || ret->reason[i] == PLACE_ALLOCATED_INSUFFICIENT)
			ret->reason[i] = PLACE_QUOTA_NOT_FIT;
	return -ENOSPC;
}

static int place_all(struct fit *fit, const struct inventory *inventory, pick_fn *pick,
		     struct fit_reasons *ret)
{
	const struct request *request = fit->request;
	uint64_t used = 0;
	fit->picks = 0;
	fit->quota.is_exceeded = false;
	memcpy(fit->card, inventory->card, inventory->count * sizeof(*fit->card));
	for (unsigned i = 0; i < request->count; i++)
		if (!request->part[i].is_init && !pick_in_quota(fit, inventory, i, pick, ALL_CARDS))
			return fail(fit, inventory, i, ret);
	for (unsigned i = 0; i < fit->picks; i++)
		used |= UINT64_C(1) << fit->pick[i].card;
	for (unsigned i = 0; i < request->count; i++) {
		if (!request->part[i].is_init)
			continue;
		set_init_cards(fit, inventory, &request->part[i]);
		if (!pick_in_quota(fit, inventory, i, pick, used) &&
		    !pick_in_quota(fit, inventory, i, pick, ALL_CARDS))
			return fail(fit, inventory, i, ret);
	}
	return 0;
}

static unsigned count_bits(uint64_t bits)
{
	return (unsigned)__builtin_popcountll(bits);
}

/* Whether check_pair() and pick_scarce() can compute the cards, instead of trying choices. */
static bool is_pair(const struct fit *fit)
{
	const struct request *request = fit->request;
	return request->count == 2 && !request->part[0].is_init && !request->part[1].is_init &&
	       !request->part[0].place.numa_bind && !quota_depends_on_card(fit);
}

static bool serves_both(struct fit *fit, const struct inventory *inventory, unsigned i)
{
	const struct request_part *part = fit->request->part;
	fit->card[i] = inventory->card[i];
	const struct place_need need = place_need(&fit->card[i], &part[0].place);
	charge_card(&fit->card[i], &need);
	return fit_check_card(fit, inventory, fit->card, i, &part[1].place) == PLACE_FITS;
}

/*
 * Whether two containers that run together fit; needs fit->serves. There are three sorts of cards: those that serve only one
 * part; those that serve both at once (fit->both); and those that serve either part, but not both at once. Each part takes
 * cards of the first two sorts first. The rest of each part must come from the third sort, each card for one part. If that
 * suffices, pick_scarce() finds a solution.
 */
static bool check_pair(struct fit *fit, const struct inventory *inventory)
{
	const struct request_part *part = fit->request->part;
	uint64_t shared = fit->serves[0] & fit->serves[1];
	unsigned lacking = 0;
	fit->both = 0;
	for (uint64_t left = shared; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		fit->both |= (uint64_t)serves_both(fit, inventory, i) << i;
	}
	for (unsigned p = 0; p < 2; p++) {
		unsigned have = count_bits((fit->serves[p] & ~shared) | fit->both);
		lacking += part[p].place.count > have ? part[p].place.count - have : 0;
	}
	return lacking <= count_bits(shared & ~fit->both);
}

/* Picks first the cards that the other part cannot use, then those that serve both at once, then those that serve either. */
static bool pick_scarce(struct fit *fit, const struct inventory *inventory, unsigned part,
			struct place_card *card, uint64_t among)
{
	const struct place_request *r = &fit->request->part[part].place;
	uint64_t shared = fit->serves[0] & fit->serves[1];
	const uint64_t tiers[] = { fit->serves[part] & ~shared, fit->both, shared & ~fit->both };
	unsigned n = 0;
	for (unsigned t = 0; t < sizeof(tiers) / sizeof(tiers[0]); t++)
		for (uint64_t left = tiers[t]; left && n < r->count; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			if (fit_check_card(fit, inventory, card, i, r) != PLACE_FITS)
				continue;
			add_pick(fit, part, card, i, place_need(&card[i], r));
			n++;
		}
	return n == r->count;
}

void fit_begin(struct fit *fit, const struct request *request)
{
	fit->request = request;
	fit_clear_caches(fit);
	fit_quota_clear(&fit->quota);
	fit->node.histogram = NULL;
}

void fit_clear_caches(struct fit *fit)
{
	fit->types.count = fit->modes.count = 0;
	fit->type = fit->mode = NULL;
}

void fit_set_histogram(struct fit *fit, const struct place_histogram *histogram)
{
	fit->node.histogram = histogram;
}

void fit_set_quota(struct fit *fit, const struct quota_limits *limits,
		   const struct quota_amounts *used)
{
	fit_quota_set(&fit->quota, fit->request, limits, used);
}

/*
 * Returns true if the cards that serve every part suffice for all parts together: then any choice works. Always false for NUMA
 * binding. fit->serves is complete only if the result is false.
 */
static bool find_serving_cards(struct fit *fit, const struct inventory *inventory)
{
	const struct request *request = fit->request;
	unsigned wanted = 0, able_to_all = 0;
	/* numa_bind comes from the pod's annotation, so it is the same for all parts. */
	bool is_numa = request->part[0].place.numa_bind;
	for (size_t p = 0; p < request->count; p++) {
		wanted += request->part[p].place.count;
		fit->serves[p] = 0;
	}
	for (unsigned i = 0; i < inventory->count; i++) {
		bool is_able_to_all = !is_numa;
		for (size_t p = 0; p < request->count; p++) {
			bool is_able = fit_check_card(fit, inventory, inventory->card, i,
						      &request->part[p].place) == PLACE_FITS;
			fit->serves[p] |= (uint64_t)is_able << i;
			is_able_to_all &= is_able;
		}
		able_to_all += is_able_to_all;
		if (able_to_all >= wanted)
			return true;
	}
	return false;
}

/*
 * If the cards of pick_part() exceed the quota, those of place_part() can be within it only if the pod has init containers. An
 * init container that gets the same cards as other containers uses less of the quota.
 */
static bool fit_together(struct fit *fit, const struct inventory *inventory, struct fit_reasons *ret)
{
	if (place_all(fit, inventory, pick_part, ret) == 0)
		return true;
	return !(fit->quota.is_exceeded && !fit->quota.has_init) &&
	       place_all(fit, inventory, place_part, ret) == 0;
}

static bool check_parts(struct fit *fit, const struct inventory *inventory, struct fit_reasons *ret)
{
	const struct request *request = fit->request;
	if (!quota_depends_on_card(fit) && find_serving_cards(fit, inventory))
		return true;
	for (size_t p = 0; p < request->count; p++) {
		const struct place_request *place = &request->part[p].place;
		ret->part = &request->part[p];
		if ((quota_depends_on_card(fit) || count_bits(fit->serves[p]) < place->count ||
		     place->numa_bind) &&
		    !check_part(fit, inventory, inventory->card, ret->part, ret->reason))
			return false;
	}
	if (!is_pair(fit))
		return fit_together(fit, inventory, ret);
	if (check_pair(fit, inventory))
		return true;
	/* The parts do not fit together. This call only fills in the reasons. */
	place_all(fit, inventory, pick_part, ret);
	return false;
}

bool fit_check(struct fit *fit, const struct inventory *cards, struct fit_reasons *ret)
{
	const struct request *request = fit->request;
	struct inventory view;
	const struct inventory *inventory = fit_visible_cards(fit, cards, &view);
	ret->is_beyond_quota = fit->quota.is_beyond;
	if (request->count > 1)
		return check_parts(fit, inventory, ret);
	ret->part = request->part;
	if (!request->count)
		return true;
	if (!check_part(fit, inventory, inventory->card, ret->part, ret->reason))
		return false;
	return !quota_depends_on_card(fit) || request->part[0].place.count == 1 ||
	       fit_together(fit, inventory, ret);
}

void fit_each_card(struct fit *fit, const struct inventory *inventory,
		   const struct request_part *part, enum place_reason ret[PLACE_MAX_CARDS])
{
	fit_quota_set_part(&fit->quota, part);
	for (unsigned i = 0; i < inventory->count; i++)
		ret[i] = fit_check_card(fit, inventory, inventory->card, i, &part->place);
}

static int make_shares(const struct fit *fit, const struct inventory *inventory,
		       struct kube_shares *ret)
{
	const struct request *request = fit->request;
	struct kube_shares shares = { .containers = request->containers };
	shares.share = calloc(fit->picks + 1, sizeof(*shares.share));
	if (!shares.share)
		return -ENOMEM;
	for (unsigned p = 0; p < request->count; p++)
		for (unsigned i = 0; i < fit->picks; i++) {
			const struct fit_pick *pick = &fit->pick[i];
			if (pick->part != p)
				continue;
			struct kube_share *s = &shares.share[shares.count++];
			s->container = request->part[p].container;
			strcpy(s->kind, SHARE_KIND);
			strcpy(s->card, inventory->card[pick->card].uuid);
			s->memory_mib = pick->need.memory_bytes >> MIB_BITS;
			s->cores_pct = pick->need.cores_mpct / MPCT;
			/* Compute judged by measured use is borrowed. Without measured use, compute is guaranteed. */
			if (request->is_opportunistic &&
			    use_of(inventory->seen, pick->card, fit->now_ns)) {
				s->borrowed_pct = s->cores_pct;
				s->cores_pct = 0;
			}
		}
	*ret = shares;
	return 0;
}

int fit_choose(struct fit *fit, const struct inventory *cards, struct kube_shares *ret,
	       struct fit_reasons *ret_reasons)
{
	struct inventory view;
	const struct inventory *inventory = fit_visible_cards(fit, cards, &view);
	ret_reasons->is_beyond_quota = fit->quota.is_beyond;
	int r = place_all(fit, inventory, place_part, ret_reasons);
	if (r < 0 && fit->request->count > 1)
		r = place_all(fit, inventory, pick_part, ret_reasons);
	if (r < 0 && is_pair(fit) && !find_serving_cards(fit, inventory) &&
	    check_pair(fit, inventory))
		r = place_all(fit, inventory, pick_scarce, ret_reasons);
	return r < 0 ? r : make_shares(fit, inventory, ret);
}
