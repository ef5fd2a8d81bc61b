#include "scheduler/opportunistic/node_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/own/node_cards.h"
#include "scheduler/inventory/inventory.h"
#include "scheduler/util/digest.h"

void use_free(struct use *u)
{
	free(u->card);
	*u = (struct use){ 0 };
}

static const struct use_card *find(const struct use *u, uint64_t id)
{
	for (unsigned i = 0; i < u->count; i++)
		if (u->card[i].id == id)
			return &u->card[i];
	return NULL;
}

static const struct kube_use *find_reported(const struct kube_uses *uses, const char *uuid)
{
	for (size_t i = 0; i < uses->count; i++)
		if (!strcmp(uses->card[i].id, uuid))
			return &uses->card[i];
	return NULL;
}

static struct use_card *merge_use(const struct use *u, const struct kube_uses *uses,
				  const struct inventory *inventory)
{
	struct use_card *card = calloc(inventory->count + 1, sizeof(*card));
	for (unsigned i = 0; card && i < inventory->count; i++) {
		uint64_t id = digest_add(DIGEST_FIRST, inventory->card[i].uuid);
		const struct use_card *before = find(u, id);
		const struct kube_use *reported = find_reported(uses, inventory->card[i].uuid);
		if (before)
			card[i] = *before;
		card[i].id = id;
		card[i].is_reported = reported != NULL;
		if (!reported)
			continue;
		card[i].peak_pct = (uint16_t)reported->peak_pct;
		card[i].now_pct = (uint16_t)reported->now_pct;
		card[i].held_pct = (uint16_t)reported->held_pct;
		card[i].memory_mib = (uint32_t)reported->memory_mib;
	}
	return card;
}

/* Whether `u` has the inventory's cards, in order. */
static bool is_of(const struct use *u, const struct inventory *inventory)
{
	bool is_same = u->count == inventory->count;
	for (unsigned i = 0; is_same && i < inventory->count; i++)
		is_same = u->card[i].id == digest_add(DIGEST_FIRST, inventory->card[i].uuid);
	return is_same;
}

int use_update(struct use *u, const char *text, const struct inventory *inventory, uint64_t now_ns,
	       struct error *err)
{
	struct kube_uses uses = { 0 };
	uint64_t digest = text ? digest_add(DIGEST_FIRST, text) : 0;
	if (digest == u->digest && (!digest || is_of(u, inventory)))
		return 0;
	int r = text ? uses_parse(text, &uses, err) : 0;
	if (r == -ENOMEM)
		return r;
	struct use_card *card = merge_use(u, &uses, inventory);
	uses_free(&uses);
	if (!card)
		return error_set_errno(err, ENOMEM, "use of GPUs");
	/* New cards have no cooldowns yet: this makes cooldown_load() read the cooldowns again. */
	if (!is_of(u, inventory))
		u->cooldown_digest = 0;
	free(u->card);
	u->card = card;
	u->count = inventory->count;
	if (digest != u->digest) {
		u->is_live = u->digest != 0;
		u->changed_ns = now_ns;
	}
	u->digest = digest;
	return r;
}

const struct use_card *use_of(const struct use *u, unsigned i, uint64_t now_ns)
{
	if (!u || !u->is_live || i >= u->count || !u->card[i].is_reported ||
	    now_ns - u->changed_ns > USE_FRESH_NS)
		return NULL;
	return &u->card[i];
}
