#include "policy/placement/place_node.h"

void place_node_link(struct place_node *node, unsigned a, unsigned b, struct place_link link)
{
	node->link[a][b] = link;
	node->link[b][a] = link;
}

bool place_is_free(const struct place_card *card)
{
	return !card->is_sick && !card->is_cordoned && card->slots_used == 0 &&
	       card->memory_used_bytes == 0 && card->cores_used_mpct == 0;
}

static const struct {
	const char *name;
	unsigned score;
} levels[PLACE_LEVEL_COUNT] = {
	[PLACE_LEVEL_UNKNOWN] = { "?", 0 },  [PLACE_LEVEL_SYS] = { "SYS", 10 },
	[PLACE_LEVEL_NODE] = { "NODE", 20 }, [PLACE_LEVEL_PHB] = { "PHB", 30 },
	[PLACE_LEVEL_PXB] = { "PXB", 40 },   [PLACE_LEVEL_PIX] = { "PIX", 50 },
	[PLACE_LEVEL_PSB] = { "PSB", 60 },
};

const char *place_level_name(enum place_level level)
{
	return levels[level].name;
}

unsigned place_link_score(struct place_link link)
{
	return levels[link.level].score + 100u * link.nvlinks;
}
