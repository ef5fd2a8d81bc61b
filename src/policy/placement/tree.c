#include "policy/placement/tree.h"

static enum place_level farthest(const struct place_node *node, uint64_t cards)
{
	enum place_level level = PLACE_LEVEL_PSB;

	for (unsigned i = 0; i < node->card_count; i++)
		for (unsigned j = i + 1; j < node->card_count; j++)
			if ((cards >> i & 1) && (cards >> j & 1) && node->link[i][j].level < level)
				level = node->link[i][j].level;
	return level;
}

/* As a bit mask: card `first`, and those of `cards` whose path to card `first` is shorter than `level`. */
static uint64_t nearer(const struct place_node *node, uint64_t cards, unsigned first,
		       enum place_level level)
{
	uint64_t near = UINT64_C(1) << first;

	for (unsigned i = 0; i < node->card_count; i++)
		if ((cards >> i & 1) && i != first && node->link[first][i].level > level)
			near |= UINT64_C(1) << i;
	return near;
}

static void set_numa(const struct place_node *node, struct place_group *group)
{
	bool is_first = true;

	for (unsigned i = 0; i < node->card_count; i++) {
		const struct place_card *card = &node->card[i];
		if (!(group->cards >> i & 1))
			continue;
		if (is_first) {
			group->numa_known = card->numa_known;
			group->numa = card->numa;
		}
		is_first = false;
		if (!card->numa_known || card->numa != group->numa)
			group->numa_known = false;
	}
}

static void add(struct place_tree *tree, const struct place_node *node, uint64_t cards, int parent)
{
	int self = (int)tree->count++;
	struct place_group *group = &tree->group[self];
	uint64_t left = cards;

	*group = (struct place_group){ .level = farthest(node, cards),
				       .parent = parent,
				       .cards = cards };
	set_numa(node, group);
	while (left) {
		uint64_t near = nearer(node, left, (unsigned)__builtin_ctzll(left), group->level);
		left &= ~near;
		if (near & (near - 1) && near != cards)
			add(tree, node, near, self);
	}
}

void place_tree_fill(struct place_tree *tree, const struct place_node *node)
{
	uint64_t all = node->card_count < 64 ? (UINT64_C(1) << node->card_count) - 1 : ~UINT64_C(0);

	tree->count = 0;
	add(tree, node, all, -1);
}
