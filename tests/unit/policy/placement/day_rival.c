/*
 * gpu-manager's choice, as its evaluators are described: a tree by PCIe level, which knows of no NVLink.
 *   several cards   "link": for each free card the nearest ancestor that has enough of them below it; of
 *                   these the nearest level, then the one with fewest; its first free cards
 *   one card        "fragment": from the root into the child with the fewest free cards that has one
 *   a part          "share": least compute left, then least memory left, that will do
 */
#include "day.h"

#include "policy/placement/tree.h"

static bool is_leaf_free(const struct place_node *node, unsigned card)
{
	return node->card[card].slots_used == 0;
}

static unsigned free_among(const struct place_node *node, uint64_t cards)
{
	unsigned count = 0;

	for (unsigned i = 0; i < node->card_count; i++)
		count += (cards >> i & 1) && is_leaf_free(node, i);
	return count;
}

static bool take_first(const struct place_node *node, uint64_t cards, unsigned count,
		       struct place_choice *ret)
{
	struct place_request whole = { .memory = PLACE_MEMORY_ALL,
				       .cores_mpct = PLACE_CORES_WHOLE_MPCT };

	ret->count = 0;
	for (unsigned i = 0; i < node->card_count && ret->count < count; i++) {
		if (!(cards >> i & 1) || !is_leaf_free(node, i))
			continue;
		ret->need[ret->count] = place_need(&node->card[i], &whole);
		ret->card[ret->count++] = i;
	}
	return ret->count == count;
}

static bool by_link(const struct place_node *node, unsigned count, struct place_choice *ret)
{
	struct place_tree tree;
	const struct place_group *best = NULL;

	place_tree_fill(&tree, node);
	for (unsigned i = 0; i < tree.count; i++) {
		const struct place_group *group = &tree.group[i];
		unsigned has = free_among(node, group->cards);
		if (has < count)
			continue;
		if (!best || group->level > best->level ||
		    (group->level == best->level && has < free_among(node, best->cards)))
			best = group;
	}
	return best && take_first(node, best->cards, count, ret);
}

static bool by_fragment(const struct place_node *node, struct place_choice *ret)
{
	struct place_tree tree;
	int at = 0;

	place_tree_fill(&tree, node);
	for (;;) {
		int next = -1;
		unsigned least = PLACE_MAX_CARDS + 1;
		for (unsigned i = 0; i < tree.count; i++) {
			unsigned has = free_among(node, tree.group[i].cards);
			if (tree.group[i].parent == at && has >= 1 && has < least) {
				next = (int)i;
				least = has;
			}
		}
		if (next < 0)
			return take_first(node, tree.group[at].cards, 1, ret);
		at = next;
	}
}

static bool by_share(const struct place_node *node, const struct day_kind *kind,
		     struct place_choice *ret)
{
	struct place_request request = day_request(node, kind);
	int best = -1;

	for (unsigned i = 0; i < node->card_count; i++) {
		const struct place_card *card = &node->card[i];
		uint32_t cores = place_cores_left(card);
		if (cores < request.cores_mpct || place_memory_left(card) < request.memory_bytes)
			continue;
		if (best < 0 || cores < place_cores_left(&node->card[best]) ||
		    (cores == place_cores_left(&node->card[best]) &&
		     place_memory_left(card) < place_memory_left(&node->card[best])))
			best = (int)i;
	}
	if (best < 0)
		return false;
	ret->count = 1;
	ret->card[0] = (unsigned)best;
	ret->need[0] = place_need(&node->card[best], &request);
	return true;
}

bool day_rival(const struct place_node *node, const struct day_kind *kind, struct place_choice *ret)
{
	if (kind->cards > 1)
		return by_link(node, kind->cards, ret);
	return kind->cards ? by_fragment(node, ret) : by_share(node, kind, ret);
}
