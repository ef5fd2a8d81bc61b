#include "scheduler/fit/fit_quota.h"

struct quota_amounts fit_quota_of(const struct place_need *need)
{
	return (struct quota_amounts){ { [QUOTA_MEMORY] = need->memory_bytes >> MIB_BITS,
					 [QUOTA_CORES] = need->cores_mpct / MPCT,
					 [QUOTA_GPUS] = 1 } };
}

/* Whether the part (one container's request) uses the same amounts of the quota on every card. */
static bool is_fixed(const struct request_part *part)
{
	return part->place.memory == PLACE_MEMORY_BYTES && !place_needs_whole_card(&part->place);
}

/* Returns a lower bound of what one share of the part uses; the exact amounts if is_fixed(). */
static struct quota_amounts least_of(const struct request_part *part)
{
	const struct place_request *r = &part->place;
	const struct place_need need = {
		.memory_bytes = r->memory == PLACE_MEMORY_BYTES ? r->memory_bytes : 0,
		.cores_mpct = place_needs_whole_card(r) ? 0 : r->cores_mpct,
	};
	return fit_quota_of(&need);
}

static struct quota_amounts multiply(struct quota_amounts amounts, unsigned count)
{
	for (int k = 0; k < QUOTA_KINDS; k++)
		amounts.of[k] *= count;
	return amounts;
}

static struct quota_amounts larger(struct quota_amounts a, const struct quota_amounts *b)
{
	for (int k = 0; k < QUOTA_KINDS; k++)
		a.of[k] = a.of[k] > b->of[k] ? a.of[k] : b->of[k];
	return a;
}

void fit_quota_clear(struct fit_quota *quota)
{
	*quota = (struct fit_quota){ .state = FIT_QUOTA_WITHIN };
}

void fit_quota_set(struct fit_quota *quota, const struct request *request,
		   const struct quota_limits *limits, const struct quota_amounts *used)
{
	struct quota_amounts init = { 0 }, all = { 0 };
	bool is_all_fixed = true;
	fit_quota_clear(quota);
	quota->left = quota_left(limits, used);
	for (size_t i = 0; i < request->count; i++) {
		const struct request_part *part = &request->part[i];
		const struct quota_amounts one = multiply(least_of(part), part->place.count);
		is_all_fixed &= is_fixed(part);
		quota_add(&all, &one);
		quota->has_init |= part->is_init;
		if (part->is_init)
			init = larger(init, &one);
		else
			quota_add(&quota->lasting, &one);
	}
	const struct quota_amounts least = larger(init, &quota->lasting);
	quota->is_beyond = !quota_allows(limits, &least);
	if (!quota_allows(&quota->left, &least))
		quota->state = FIT_QUOTA_EXCEEDED;
	/* The cards do not matter if all amounts are fixed and even `all`, an upper bound, is within the quota. */
	else if (!is_all_fixed || !quota_allows(&quota->left, &all))
		quota->state = FIT_QUOTA_DEPENDS_ON_CARD;
}

void fit_quota_set_part(struct fit_quota *quota, const struct request_part *part)
{
	if (quota->state != FIT_QUOTA_DEPENDS_ON_CARD)
		return;
	const struct quota_amounts one = least_of(part);
	quota->beside = part->is_init ? multiply(one, part->place.count) : quota->lasting;
	quota_subtract(&quota->beside, &one);
}
