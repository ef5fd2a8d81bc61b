#include "scheduler/fit/fit.h"

#include <string.h>

/* cap on a GPU's used compute, so that it fits in 32 bits in thousandths of a percent */
#define CORES_MOST_PCT 100000u
/* The mode of a GPU on which HAMi's device plugin makes MIG instances on demand. allot-scheduler assigns no such GPU. */
#define MODE_DYNAMIC "mig"

struct opportunistic_card fit_opportunistic_card(const struct fit *fit,
						 const struct inventory *inventory, unsigned i)
{
	return (struct opportunistic_card){
		.total_pct = inventory->card[i].cores_total_mpct / MPCT,
		.guaranteed_pct = inventory->use[i].cores_pct,
		.borrowed_pct = inventory->use[i].borrowed_pct,
		.use = use_of(inventory->seen, i, fit->now_ns),
	};
}

const struct inventory *fit_visible_cards(struct fit *fit, const struct inventory *inventory,
					  struct inventory *ret)
{
	if (!fit->request->is_opportunistic || !inventory->seen)
		return inventory;
	*ret = *inventory;
	ret->card = fit->seen;
	for (unsigned i = 0; i < inventory->count; i++) {
		const struct opportunistic_card card = fit_opportunistic_card(fit, inventory, i);
		uint64_t taken_pct = opportunistic_taken_pct(&card, fit->now_ns);
		fit->seen[i] = inventory->card[i];
		fit->seen[i].cores_used_mpct =
			(uint32_t)((taken_pct < CORES_MOST_PCT ? taken_pct : CORES_MOST_PCT) * MPCT);
	}
	return ret;
}

/* Returns is_wanted(request, string), from `memo` if possible. Interned strings are equal if their addresses are. */
static bool recall(struct fit_memo *memo, const struct request *request, const char *string,
		   bool (*is_wanted)(const struct request *request, const char *string))
{
	for (unsigned i = 0; i < memo->count; i++)
		if (memo->string[i] == string)
			return memo->is_wanted[i];
	bool is = is_wanted(request, string);
	if (memo->count < FIT_MEMO_STRINGS) {
		memo->string[memo->count] = string;
		memo->is_wanted[memo->count++] = is;
	}
	return is;
}

static bool is_mode(const struct request *request, const char *mode)
{
	return strcmp(mode, MODE_DYNAMIC) != 0 && (!request->mode || strstr(request->mode, mode));
}

static bool is_type(const struct request *request, const char *type)
{
	return place_is_type(request->use_type, request->nouse_type, type);
}

static bool is_wanted_kind(struct fit *fit, const struct inventory *inventory, unsigned i)
{
	const char *mode = inventory->mode ? inventory->mode : inventory->use[i].mode;
	const char *type = inventory->card[i].type;
	if (type != fit->type || mode != fit->mode) {
		fit->is_wanted = recall(&fit->modes, fit->request, mode, is_mode) &&
				 recall(&fit->types, fit->request, type, is_type);
		fit->type = type;
		fit->mode = mode;
	}
	return fit->is_wanted;
}

/* Without a device plugin for a resource name, the kubelet would start the container without a card, or fail the pod. */
static bool has_resources(const struct fit *fit, const struct inventory *inventory)
{
	return !(fit->request->names & ~inventory->served_names);
}

/*
 * If several reasons apply, returns the first of: not served, use unknown, unhealthy, cordoned, type, UUID, slots, mutex,
 * quota, memory, compute.
 */
enum place_reason fit_check_card(struct fit *fit, const struct inventory *inventory,
				 const struct place_card *card, unsigned i,
				 const struct place_request *request)
{
	if (!has_resources(fit, inventory))
		return PLACE_CARD_NOT_SERVED;
	if (inventory->unknown)
		return PLACE_CARD_USE_UNKNOWN;
	enum place_reason reason = place_check_card(&card[i], request);
	if (reason == PLACE_CARD_NOT_HEALTH || reason == PLACE_CARD_CORDONED)
		return reason;
	if (!is_wanted_kind(fit, inventory, i))
		return PLACE_CARD_TYPE_MISMATCH;
	if (fit->request->is_mutex && card[i].slots_used &&
	    (reason == PLACE_FITS || reason > PLACE_CARD_TIME_SLICING_EXHAUSTED))
		return PLACE_EXCLUSIVE_CONFLICT;
	if ((reason == PLACE_FITS || reason > PLACE_QUOTA_NOT_FIT) &&
	    fit_quota_refuses(&fit->quota, &card[i], request))
		return PLACE_QUOTA_NOT_FIT;
	return reason;
}

bool fit_may_serve(struct fit *fit, const struct inventory *inventory,
		   const struct place_card *card, unsigned i, const struct place_request *part)
{
	return has_resources(fit, inventory) && !inventory->unknown &&
	       is_wanted_kind(fit, inventory, i) &&
	       !(fit->request->is_mutex && card[i].slots_used) &&
	       !fit_quota_refuses(&fit->quota, &card[i], part);
}
