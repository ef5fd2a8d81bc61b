#include "node/kube/inventory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "node/topology.h"

#define MIB (UINT64_C(1) << 20)

static struct kube_card describe(const struct config *config, const struct card *card,
				 const struct place_card *placed)
{
	struct kube_card k = { .index = card->index,
			       .count = config_split_count(config),
			       .memory_mib = (uint64_t)((double)(card->info.memory_bytes / MIB) *
							config->kube_memory_scaling),
			       .cores_pct = (unsigned)(100 * config->kube_core_scaling + 0.5),
			       .numa = placed->numa_known ? placed->numa : 0,
			       .mode = CARD_MODE_DEFAULT,
			       .is_healthy = !placed->is_sick };
	snprintf(k.id, sizeof(k.id), "%s", card->info.uuid_text);
	cards_type(card->info.name, k.type);
	return k;
}

static int read_scores(const struct node *node, const struct place_node *placed,
		       struct kube_scores *ret)
{
	bool is_known = false;
	struct kube_scores scores;
	int r = scores_new(node->card_count, &scores);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < node->card_count; i++) {
		snprintf(scores.id[i], KUBE_ID_MAX, "%s", node->card[i].info.uuid_text);
		for (unsigned j = 0; j < node->card_count; j++) {
			/* However near, an instance of MIG is never given beside another card. */
			bool is_no_pair = i == j || placed->card[i].is_instance ||
					  placed->card[j].is_instance;
			unsigned score = is_no_pair ? 0 : place_link_score(placed->link[i][j]);
			scores.score[i * node->card_count + j] = (int)score;
			is_known |= score > 0;
		}
	}
	if (!is_known)
		scores_free(&scores);
	*ret = scores;
	return 0;
}

int inventory_read(struct node *node, struct kube_cards *ret_cards, struct kube_scores *ret_scores)
{
	struct kube_cards cards = { .count = node->card_count };
	cleanup_free struct place_node *placed = calloc(1, sizeof(*placed));
	cards.card = calloc(node->card_count + 1, sizeof(*cards.card));
	int r = placed && cards.card ? 0 : -ENOMEM;
	if (r >= 0)
		topology_model(node, "", placed);
	for (unsigned i = 0; r >= 0 && i < node->card_count; i++)
		cards.card[i] = describe(&node->config, &node->card[i], &placed->card[i]);
	if (r >= 0)
		r = read_scores(node, placed, ret_scores);
	if (r < 0) {
		free(cards.card);
		return r;
	}
	*ret_cards = cards;
	return 0;
}
