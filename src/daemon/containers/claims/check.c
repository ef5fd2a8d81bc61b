#include "daemon/containers/claims/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/state/pod_stage.h"

#define MIB (UINT64_C(1) << 20)
#define PCT_SLACK 1e-6 /* tolerance for sums of floating-point shares */

struct sums {
	/* given_bytes: the quotas that must stay on the card; movable_bytes: the largest quota with ON_FULL_SWAP */
	uint64_t given_bytes, movable_bytes;
	double cores_pct;
};

static void add(struct sums *sums, const struct tenant_terms *terms, const struct promise *p)
{
	sums->cores_pct += p->cores_pct;
	if (!p->memory_given || terms->on_full == ON_FULL_WAIT)
		return;
	if (terms->on_full == ON_FULL_FAIL)
		sums->given_bytes += p->quota_bytes;
	else if (p->quota_bytes > sums->movable_bytes)
		sums->movable_bytes = p->quota_bytes;
}

static void add_all(struct sums *sums, const struct tenant_terms *terms, const struct card *card)
{
	for (unsigned i = 0; i < terms->device_count; i++)
		if (terms->device[i].card == card)
			add(sums, terms, &terms->device[i].promise);
}

static size_t add_stages(struct stage_item *items, const struct tenant_terms *terms,
			 const struct card *card)
{
	size_t count = 0;
	for (unsigned i = 0; i < terms->device_count; i++) {
		struct sums sums = { 0 };
		if (terms->device[i].card != card)
			continue;
		add(&sums, terms, &terms->device[i].promise);
		items[count++] = (struct stage_item){ pod_stage_of(terms->claim.key),
						      { .promised_bytes = sums.given_bytes,
							.cores_pct = sums.cores_pct } };
	}
	return count;
}

/*
 * Subtracts memory and cores that are counted twice: containers of one pod that never run at the same time
 * (daemon/state/pod_stage.h) share these, so only the largest container counts.
 */
static void take_stages_off(struct sums *sums, const struct tenant_terms *const *others,
			    size_t count, const struct tenant_terms *one, const struct card *card)
{
	size_t item_count = 0;
	cleanup_free struct stage_item *items = calloc((count + 1) * REGION_MAX_DEVICES,
						       sizeof(*items));
	for (size_t i = 0; items && i < count; i++)
		item_count += add_stages(items + item_count, others[i], card);
	if (items)
		item_count += add_stages(items + item_count, one, card);
	struct stage_amount unneeded = pod_stage_unneeded(items, item_count, NULL);
	sums->given_bytes -= unneeded.promised_bytes;
	sums->cores_pct -= unneeded.cores_pct;
}

/* Rounds up, so that a sum just over the GPU's memory is not shown as equal to it. */
static uint64_t whole_mib(uint64_t bytes)
{
	return bytes / MIB + (bytes % MIB > 0);
}

static int check_card(const struct tenant_terms *const *others, size_t count,
		      const struct tenant_terms *one, unsigned device, bool may_overcommit,
		      struct error *err)
{
	const struct card *card = one->device[device].card;
	const struct promise *p = &one->device[device].promise;
	struct sums sums = { 0 };
	if (!card)
		return 0;
	uint64_t most = card->info.memory_bytes;
	/* Check this first: quotas read from a file may be huge, and those that pass cannot overflow the sums below. */
	if (p->memory_given && p->quota_bytes > most)
		return error_set(err, ENOSPC,
				 "claim '%s': GPU %u: a memory quota of %" PRIu64
				 " MiB is more than the GPU has (%" PRIu64 " MiB)",
				 one->claim.key, card->index, whole_mib(p->quota_bytes), most / MIB);
	for (size_t i = 0; i < count; i++)
		add_all(&sums, others[i], card);
	add_all(&sums, one, card);
	take_stages_off(&sums, others, count, one, card);
	if (sums.given_bytes + sums.movable_bytes > most)
		return error_set(err, ENOSPC,
				 "claim '%s': GPU %u: memory quotas add up to %" PRIu64
				 " MiB, and the GPU has %" PRIu64 " MiB",
				 one->claim.key, card->index,
				 whole_mib(sums.given_bytes + sums.movable_bytes), most / MIB);
	if (!may_overcommit && sums.cores_pct > 100 + PCT_SLACK)
		return error_set(
			err, ENOSPC,
			"claim '%s': GPU %u: guaranteed cores add up to %g %%: must be at most "
			"100 %%",
			one->claim.key, card->index, sums.cores_pct);
	return 0;
}

static int check_pair(const struct tenant_terms *a, const struct tenant_terms *b, struct error *err)
{
	if (!strcmp(a->claim.key, b->claim.key))
		return error_set(err, EEXIST, "claim '%s' already exists", a->claim.key);
	if (!strcmp(a->id, b->id) || !strcmp(a->name, b->name))
		return error_set(
			err, EEXIST,
			"claim '%s': tenant '%s' (%s) already belongs to claim '%s': end "
			"one of the two claims: delete its pod or CDI device (allot cdi remove)",
			a->claim.key, a->name, a->id, b->claim.key);
	for (unsigned i = 0; i < a->device_count; i++)
		for (unsigned j = 0; j < b->device_count; j++) {
			if (!a->device[i].card || a->device[i].card != b->device[j].card)
				continue;
			int slot = slots_first_common(&a->device[i].slots, &b->device[j].slots);
			if (slot >= 0)
				return error_set(
					err, EEXIST,
					"claim '%s': device %s-%d already belongs to claim '%s': "
					"end one of the two claims: delete its pod or CDI device "
					"(allot cdi remove)",
					a->claim.key, a->device[i].card->info.uuid_text, slot,
					b->claim.key);
		}
	return 0;
}

static int claims_check_one(const struct tenant_terms *const *others, size_t count,
			    const struct tenant_terms *one, bool may_overcommit, struct error *err)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < count; i++)
		r = check_pair(one, others[i], err);
	for (unsigned i = 0; r >= 0 && i < one->device_count; i++)
		r = check_card(others, count, one, i, may_overcommit, err);
	return r;
}

int claims_check(const struct tenant_terms *const *list, size_t count, bool may_overcommit,
		 struct error *err)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < count; i++)
		r = claims_check_one(list, i, list[i], may_overcommit, err);
	return r;
}
