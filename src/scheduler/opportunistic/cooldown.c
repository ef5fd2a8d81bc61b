#include "scheduler/opportunistic/cooldown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kube/own/node_cards.h"
#include "scheduler/opportunistic/opportunistic.h"
#include "scheduler/inventory/inventory.h"
#include "scheduler/util/digest.h"

#define COOLDOWN_MOST_S ((int64_t)(OPPORTUNISTIC_COOLDOWN_MOST_NS / NSEC_PER_SEC))
#define FORGIVE_S ((int64_t)(OPPORTUNISTIC_FORGIVE_NS / NSEC_PER_SEC))

/* Times before the start of the monotonic clock become 1, because 0 means no cooldown. */
static uint64_t to_monotonic_ns(int64_t until_s, struct cooldown_now now)
{
	if (until_s >= now.wall_s) {
		int64_t left_s = until_s - now.wall_s;
		return now.ns + (uint64_t)(left_s < COOLDOWN_MOST_S ? left_s : COOLDOWN_MOST_S) *
					NSEC_PER_SEC;
	}
	uint64_t past_ns = (uint64_t)(now.wall_s - until_s) * NSEC_PER_SEC;
	return now.ns > past_ns ? now.ns - past_ns : 1;
}

static void cooldown(struct use_card *card, const struct kube_cooldown *entry,
		     struct cooldown_now now)
{
	/* An ended cooldown still counts for FORGIVE_S: it makes the next one longer. */
	if (entry->until_s < now.wall_s && now.wall_s - entry->until_s >= FORGIVE_S)
		return;
	uint64_t until_ns = to_monotonic_ns(entry->until_s, now);
	if (until_ns > card->cooldown_ns)
		card->cooldown_ns = until_ns;
	if (entry->rounds > card->rounds)
		card->rounds = (uint8_t)entry->rounds;
}

static void open_all(struct use *u)
{
	for (unsigned i = 0; i < u->count; i++) {
		u->card[i].cooldown_ns = 0;
		u->card[i].rounds = 0;
	}
}

int cooldown_load(struct use *u, const char *text, const struct inventory *inventory,
		  struct cooldown_now now, struct error *err)
{
	struct kube_cooldowns cooldowns = { 0 };
	uint64_t digest = text ? digest_add(DIGEST_FIRST, text) : 0;
	/* Without measured use (count 0), opportunistic pods borrow no guaranteed compute, so cooldowns do not matter. */
	if (digest == u->cooldown_digest || !u->count)
		return 0;
	if (!text)
		open_all(u);
	int r = text ? cooldowns_parse(text, &cooldowns, err) : 0;
	if (r == -ENOMEM)
		return r;
	for (unsigned i = 0; i < u->count && i < inventory->count; i++)
		for (size_t k = 0; k < cooldowns.count; k++)
			if (!strcmp(cooldowns.card[k].id, inventory->card[i].uuid))
				cooldown(&u->card[i], &cooldowns.card[k], now);
	cooldowns_free(&cooldowns);
	u->cooldown_digest = digest;
	return r;
}

static int64_t to_wall_s(uint64_t cooldown_ns, struct cooldown_now now)
{
	if (!cooldown_ns || now.ns >= cooldown_ns + OPPORTUNISTIC_FORGIVE_NS)
		return 0;
	if (now.ns >= cooldown_ns)
		return now.wall_s - (int64_t)((now.ns - cooldown_ns) / NSEC_PER_SEC);
	return now.wall_s + (int64_t)((cooldown_ns - now.ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
}

int cooldown_format(const struct use *u, const struct inventory *inventory, struct cooldown_now now,
		    char **ret)
{
	struct kube_cooldowns cooldowns = { .card = calloc(u->count + 1, sizeof(*cooldowns.card)) };
	if (!cooldowns.card)
		return -ENOMEM;
	for (unsigned i = 0; i < u->count && i < inventory->count; i++) {
		struct kube_cooldown *entry = &cooldowns.card[cooldowns.count];
		const char *uuid = inventory->card[i].uuid;
		int64_t until_s = to_wall_s(u->card[i].cooldown_ns, now);
		if (until_s <= 0 || !u->card[i].rounds || strlen(uuid) >= sizeof(entry->id))
			continue;
		strcpy(entry->id, uuid);
		entry->until_s = until_s;
		entry->rounds = u->card[i].rounds;
		cooldowns.count++;
	}
	char *text = cooldowns.count ? cooldowns_format(&cooldowns) : NULL;
	int r = cooldowns.count && !text ? -ENOMEM : 0;
	cooldowns_free(&cooldowns);
	if (r >= 0)
		*ret = text;
	return r;
}
