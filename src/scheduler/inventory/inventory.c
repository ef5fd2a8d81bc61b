#include "scheduler/inventory/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/min.h"

/* Caps a sum that is too large for its field of struct place_card, to a value that is still more than any card has. */
static void copy_sums(struct inventory *inventory, unsigned i)
{
	const struct inventory_use *use = &inventory->use[i];
	struct place_card *card = &inventory->card[i];
	card->memory_used_bytes = min_u64(use->memory_mib, UINT64_MAX >> (MIB_BITS + 2)) << MIB_BITS;
	card->cores_used_mpct = (uint32_t)(min_u64(use->cores_pct, UINT32_MAX / MPCT) * MPCT);
	card->slots_used = (uint32_t)min_u64(use->slots, UINT32_MAX);
}

static int find_card(const struct inventory *inventory, const char *uuid)
{
	for (unsigned i = 0; i < inventory->count; i++)
		if (inventory->card[i].uuid == uuid)
			return (int)i;
	return -1;
}

struct demand {
	uint64_t memory_mib, cores_pct, slots, borrowed_pct;
};

static void add(struct demand *to, const struct demand *by)
{
	to->memory_mib += by->memory_mib;
	to->cores_pct += by->cores_pct;
	to->slots += by->slots;
	to->borrowed_pct += by->borrowed_pct;
}

static void raise_to(struct demand *to, const struct demand *least)
{
	to->memory_mib = to->memory_mib > least->memory_mib ? to->memory_mib : least->memory_mib;
	to->cores_pct = to->cores_pct > least->cores_pct ? to->cores_pct : least->cores_pct;
	to->slots = to->slots > least->slots ? to->slots : least->slots;
	to->borrowed_pct = to->borrowed_pct > least->borrowed_pct ? to->borrowed_pct
								  : least->borrowed_pct;
}

/* Returns what one card is charged for the shares. `from` is its first share. */
static struct demand demand_of(const struct inventory_shares *shares, unsigned from)
{
	struct demand lasting = { 0 }, peak = { 0 }, init = { 0 };
	const struct inventory_share *before = NULL; /* the last share of an init container */
	for (unsigned i = from; i < shares->count; i++) {
		const struct inventory_share *s = &shares->share[i];
		const struct demand one = { s->memory_mib, s->cores_pct, 1, s->borrowed_pct };
		if (s->card != shares->share[from].card)
			continue;
		if (s->stage != INVENTORY_INIT) {
			add(&lasting, &one);
			continue;
		}
		/* a new init container: its shares add to the sidecars started before it */
		if (!before || before->container != s->container)
			init = lasting;
		before = s;
		add(&init, &one);
		raise_to(&peak, &init);
	}
	raise_to(&peak, &lasting);
	return peak;
}

static bool is_first_of_card(const struct inventory_shares *shares, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (shares->share[k].card == shares->share[i].card)
			return false;
	return true;
}

struct quota_amounts inventory_shares_sum(const struct inventory_shares *shares)
{
	struct demand sum = { 0 };
	for (unsigned i = 0; i < shares->count; i++)
		if (is_first_of_card(shares, i)) {
			const struct demand d = demand_of(shares, i);
			add(&sum, &d);
		}
	return (struct quota_amounts){
		{ [QUOTA_MEMORY] = sum.memory_mib, [QUOTA_CORES] = sum.cores_pct, [QUOTA_GPUS] = sum.slots }
	};
}

static void apply(struct inventory *inventory, const struct inventory_shares *shares, bool is_taken)
{
	inventory->unknown += shares->is_unknown ? is_taken ? 1u : -1u : 0u;
	for (unsigned i = 0; i < shares->count; i++) {
		int card = is_first_of_card(shares, i) ? find_card(inventory, shares->share[i].card)
						       : -1;
		if (card < 0)
			continue;
		struct inventory_use *use = &inventory->use[card];
		const struct demand d = demand_of(shares, i);
		use->memory_mib += is_taken ? d.memory_mib : -d.memory_mib;
		use->cores_pct += is_taken ? d.cores_pct : -d.cores_pct;
		use->slots += is_taken ? d.slots : -d.slots;
		use->borrowed_pct += is_taken ? d.borrowed_pct : -d.borrowed_pct;
		copy_sums(inventory, (unsigned)card);
	}
}

void inventory_charge(struct inventory *inventory, const struct inventory_shares *shares)
{
	apply(inventory, shares, true);
}

void inventory_discharge(struct inventory *inventory, const struct inventory_shares *shares)
{
	apply(inventory, shares, false);
}

uint64_t inventory_shares_borrowed_pct(const struct inventory_shares *shares, const char *card)
{
	uint64_t pct = 0;
	for (unsigned i = 0; i < shares->count; i++)
		if ((!card || shares->share[i].card == card) && is_first_of_card(shares, i))
			pct += demand_of(shares, i).borrowed_pct;
	return pct;
}

int inventory_shares_make(const struct kube_shares *list, const uint8_t *stage, size_t containers,
			  struct string_map *strings, struct inventory_shares *ret,
			  struct error *err)
{
	struct inventory_shares shares = { 0 };
	if (list->count > INVENTORY_SHARES_MAX)
		return error_set(err, EINVAL, "%zu GPU shares: must be at most %d", list->count,
				 INVENTORY_SHARES_MAX);
	shares.share = list->count ? calloc(list->count, sizeof(*shares.share)) : NULL;
	if (!shares.share && list->count)
		return error_set_errno(err, ENOMEM, "shares");
	for (; shares.count < list->count; shares.count++) {
		const struct kube_share *from = &list->share[shares.count];
		struct inventory_share *to = &shares.share[shares.count];
		*to = (struct inventory_share){
			.card = intern(strings, from->card),
			/* kube/hami/shares.c rejects more than INT32_MAX */
			.memory_mib = (uint32_t)from->memory_mib,
			.cores_pct = from->cores_pct,
			.container = (uint16_t)from->container,
			.stage = from->container < containers ? stage[from->container]
							      : INVENTORY_APP,
			/* kube/hami/shares.c rejects more than 100 */
			.borrowed_pct = (uint8_t)from->borrowed_pct,
		};
		if (!to->card) {
			inventory_shares_free(&shares, strings);
			return error_set_errno(err, ENOMEM, "shares");
		}
	}
	*ret = shares;
	return 0;
}

void inventory_shares_free(struct inventory_shares *shares, struct string_map *strings)
{
	for (unsigned i = 0; i < shares->count; i++)
		intern_release(strings, shares->share[i].card);
	free(shares->share);
	*shares = (struct inventory_shares){ 0 };
}

void inventory_free(struct inventory *inventory)
{
	for (unsigned i = 0; i < inventory->count; i++) {
		intern_release(inventory->strings, inventory->card[i].uuid);
		intern_release(inventory->strings, inventory->card[i].type);
		intern_release(inventory->strings, inventory->use[i].mode);
	}
	free(inventory->card);
	free(inventory->use);
	free(inventory->score);
	*inventory = (struct inventory){ 0 };
}

static void *copy_of(const void *from, size_t size)
{
	void *to = from && size ? malloc(size) : NULL;
	return to ? memcpy(to, from, size) : NULL;
}

int inventory_copy(const struct inventory *from, struct inventory *ret)
{
	size_t n = from->count;
	struct inventory to = { .strings = from->strings,
				.seen = from->seen,
				.unknown = from->unknown,
				.served_names = from->served_names,
				.mode = from->mode,
				.card = copy_of(from->card, n * sizeof(*from->card)),
				.use = copy_of(from->use, n * sizeof(*from->use)),
				.score = copy_of(from->score, n * n * sizeof(*from->score)) };
	if (n && (!to.card || !to.use || (from->score && !to.score))) {
		inventory_free(&to);
		return -ENOMEM;
	}
	/* The strings are interned already, so another reference cannot fail. */
	for (; to.count < n; to.count++) {
		intern(to.strings, to.card[to.count].uuid);
		intern(to.strings, to.card[to.count].type);
		intern(to.strings, to.use[to.count].mode);
	}
	*ret = to;
	return 0;
}
