/*
 * A node's cards as a tree of groups. Cards of one group are nearer to each other by PCIe paths than to other cards. (NVLink
 * forms no tree.) Groups never overlap: the lowest common PCIe ancestor of two cards is an ancestor of all cards below it.
 */
#pragma once

#include "policy/placement/place_node.h"

struct place_group {
	enum place_level level; /* the longest path between two cards of the group */
	int parent;             /* index of the group around this group; -1 for the whole node */
	uint64_t cards;         /* bit i: card i is in the group */
	bool numa_known;        /* all cards of the group are known to be of one NUMA node */
	unsigned numa;
};

/* There are never more groups than cards: each group below the root has at least two cards, and fewer than its parent. */
struct place_tree {
	unsigned count;
	/* each group comes after its parent; the first group is the whole node */
	struct place_group group[PLACE_MAX_CARDS];
};

/* Fills in the tree. A node with one card gets one group with that card. */
void place_tree_fill(struct place_tree *tree, const struct place_node *node);
