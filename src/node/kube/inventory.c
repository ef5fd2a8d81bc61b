#include "node/kube/inventory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/node.h"

#define MIB (UINT64_C(1) << 20)

static struct kube_card describe(const struct config *config, const struct card *card)
{
	struct kube_card k = { .index = card->index,
			       .count = config->kube_split_count,
			       .memory_mib = (uint64_t)((double)(card->info.memory_bytes / MIB) *
							config->kube_memory_scaling),
			       .cores_pct = (unsigned)(100 * config->kube_core_scaling + 0.5),
			       .mode = CARD_MODE_DEFAULT,
			       .is_healthy = true };
	snprintf(k.id, sizeof(k.id), "%s", card->info.uuid_text);
	cards_type(card->info.name, k.type);
	return k;
}

int inventory_cards(const struct node *node, struct kube_cards *ret)
{
	struct kube_cards cards = { .count = node->card_count };
	cards.card = calloc(node->card_count ? node->card_count : 1, sizeof(*cards.card));
	if (!cards.card)
		return -ENOMEM;
	for (unsigned i = 0; i < node->card_count; i++)
		cards.card[i] = describe(&node->config, &node->card[i]);
	*ret = cards;
	return 0;
}
