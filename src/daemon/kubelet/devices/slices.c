#include "daemon/kubelet/devices/slices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define LONGEST_NUMBER 3 /* length of "-99" */

bool slices_can_name(const char *uuid)
{
	return strlen(uuid) + LONGEST_NUMBER < SLICE_ID_MAX;
}

void slice_format(const struct slices *slices, unsigned card, unsigned number,
		  char ret_id[SLICE_ID_MAX])
{
	snprintf(ret_id, SLICE_ID_MAX, "%s-%u", slices->uuid[card], number);
}

int slices_find_card(const struct slices *slices, const char *id, unsigned *ret_card,
		     const char **ret_number, struct error *err)
{
	const char *dash = strrchr(id, '-');
	for (unsigned i = 0; dash && i < slices->card_count; i++) {
		size_t n = strlen(slices->uuid[i]);
		if (n != (size_t)(dash - id) || memcmp(slices->uuid[i], id, n) != 0)
			continue;
		*ret_card = i;
		*ret_number = dash + 1;
		return 0;
	}
	return error_set(
		err, EINVAL,
		"device '%.63s' is not one of allotd's: must be a GPU of this node and a number, "
		"such as %s-0",
		id, slices->card_count ? slices->uuid[0] : "GPU-<UUID>");
}

bool slices_parse_number(const char *text, unsigned below, unsigned *ret)
{
	size_t length = strlen(text);
	if (!length || length > 4 || strspn(text, "0123456789") != length ||
	    (text[0] == '0' && length > 1))
		return false;
	unsigned long number = strtoul(text, NULL, 10);
	if (number < below)
		*ret = (unsigned)number;
	return number < below;
}

int slice_parse(const struct slices *slices, const char *id, unsigned *ret_card,
		unsigned *ret_number, struct error *err)
{
	const char *number;
	unsigned card;
	int r = slices_find_card(slices, id, &card, &number, err);
	if (r < 0)
		return r;
	if (!slices_parse_number(number, slices->per_card, ret_number))
		return error_set(
			err, EINVAL,
			"device '%.63s' is not one of allotd's: its number '%.20s' must be 0 to %u: "
			"if kube_share, kube_slices or kube_split_count was changed, restart the kubelet",
			id, number, slices->per_card - 1);
	*ret_card = card;
	return 0;
}

bool slice_set_first(const struct slices *slices, const struct slice_set *set,
		     char ret_id[SLICE_ID_MAX])
{
	for (unsigned i = 0; i < slices->card_count; i++)
		for (unsigned k = 0; k < slices->per_card; k++)
			if (slots_has(&set->card[i], k)) {
				slice_format(slices, i, k, ret_id);
				return true;
			}
	return false;
}

int slice_set_parse(const struct slices *slices, char *const *ids, size_t count,
		    struct slice_set *ret, struct error *err)
{
	struct slice_set set = { 0 };
	for (size_t i = 0; i < count; i++) {
		unsigned card, number;
		int r = slice_parse(slices, ids[i], &card, &number, err);
		if (r < 0)
			return r;
		if (slots_has(&set.card[card], number))
			return error_set(err, EINVAL, "device '%.63s' is named twice", ids[i]);
		slots_add(&set.card[card], number);
	}
	*ret = set;
	return 0;
}

struct slice_share slices_share(unsigned per_card, unsigned count, uint64_t card_bytes, bool is_hard)
{
	struct slice_share share;
	/* Multiply before dividing, for precision; a card's bytes times 100 fit 64 bits. */
	share.memory_bytes = card_bytes * count / per_card / MIB * MIB;
	share.cores_pct = (double)(10000 * count / per_card) / 100;
	share.limit_pct = is_hard ? share.cores_pct : 100;
	return share;
}

static unsigned left_of(const struct slice_set *available, const struct slice_set *taken,
			unsigned card)
{
	return slots_count(&available->card[card]) - slots_count(&taken->card[card]);
}

static void take(const struct slices *slices, const struct slice_set *available, unsigned card,
		 unsigned *wanted, struct slice_set *taken)
{
	for (unsigned i = 0; i < slices->per_card && *wanted; i++)
		if (slots_has(&available->card[card], i) && !slots_has(&taken->card[card], i)) {
			slots_add(&taken->card[card], i);
			--*wanted;
		}
}

/*
 * Chooses the next card to take slices from, so that few cards are needed. In order of preference:
 * 1. a card from which `taken` already has slices; of several, the card with the fewest left
 * 2. a card with at least `wanted` slices left; of several, the card with the fewest left
 * 3. the card with the most slices left
 */
static unsigned choose(const struct slices *slices, const struct slice_set *available,
		       const struct slice_set *taken, unsigned wanted)
{
	unsigned best = 0, best_left = 0;
	bool is_best_used = false;
	for (unsigned i = 0; i < slices->card_count; i++) {
		unsigned left = left_of(available, taken, i);
		bool is_used = slots_count(&taken->card[i]);
		if (!left)
			continue;
		bool is_better = is_used != is_best_used ? is_used
				 : is_used               ? left < best_left
				 : left >= wanted        ? best_left < wanted || left < best_left
							 : best_left < wanted && left > best_left;
		if (best_left && !is_better)
			continue;
		best = i;
		best_left = left;
		is_best_used = is_used;
	}
	return best;
}

static int check_must(const struct slices *slices, const struct slice_set *available,
		      const struct slice_set *must, struct error *err)
{
	for (unsigned i = 0; i < slices->card_count; i++)
		for (unsigned k = 0; k < slices->per_card; k++) {
			char id[SLICE_ID_MAX];
			if (!slots_has(&must->card[i], k) || slots_has(&available->card[i], k))
				continue;
			slice_format(slices, i, k, id);
			return error_set(
				err, EINVAL,
				"the kubelet says that the allocation must include device '%s', but does "
				"not list this device as available",
				id);
		}
	return 0;
}

int slices_prefer(const struct slices *slices, const struct slice_set *available,
		  const struct slice_set *must, unsigned size, struct slice_set *ret,
		  struct error *err)
{
	unsigned there = 0, musts = 0;
	struct slice_set taken = *must;
	int r = check_must(slices, available, must, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < slices->card_count; i++) {
		there += slots_count(&available->card[i]);
		musts += slots_count(&must->card[i]);
	}
	if (size > there)
		return error_set(
			err, EINVAL,
			"the kubelet asks for %u devices, but lists only %u as available: restart the kubelet, then make the pod anew",
			size, there);
	if (size < musts)
		return error_set(
			err, EINVAL,
			"the kubelet asks for %u devices, but says that the allocation must include %u",
			size, musts);
	for (unsigned wanted = size - musts; wanted;)
		take(slices, available, choose(slices, available, &taken, wanted), &wanted, &taken);
	*ret = taken;
	return 0;
}

int slices_prefer_on(const struct slices *slices, const struct slice_set *available,
		     const struct slice_set *must, unsigned size, uint64_t cards,
		     struct slice_set *ret, struct error *err)
{
	struct slice_set taken = *must;
	unsigned each = cards ? size / (unsigned)__builtin_popcountll(cards) : 0;
	unsigned left = size;
	for (unsigned i = 0; i < slices->card_count; i++)
		left -= slots_count(&must->card[i]) < left ? slots_count(&must->card[i]) : left;
	for (unsigned i = 0; i < slices->card_count; i++) {
		unsigned has = slots_count(&taken.card[i]), wanted = has < each ? each - has : 0;
		if (!(cards >> i & 1))
			continue;
		if (wanted > left)
			wanted = left;
		left -= wanted;
		take(slices, available, i, &wanted, &taken);
		left += wanted;
	}
	return slices_prefer(slices, available, &taken, size, ret, err);
}
