/*
 * The cards of a node as a tree of groups: the cards of a group are nearer to each other than to other cards, by their PCIe
 * paths alone (NVLink forms no tree). Groups never overlap, because a common PCIe ancestor of two cards is one of all cards
 * below it.
 */
#pragma once

#include "policy/placement/place_node.h"

struct place_group {
	enum place_level level; /* the longest path between two of its cards */
	int parent;      /* index of the group that contains this one; -1 for the whole node */
	uint64_t cards;  /* bit i is set if card i is in the group */
	bool numa_known; /* all its cards are known to be of one NUMA node */
	unsigned numa;
};

/* Every group has at least two cards, and fewer than its parent. So there are fewer groups than cards. */
struct place_tree {
	unsigned count;
	/* Each behind its parent; the first is the whole node. */
	struct place_group group[PLACE_MAX_CARDS];
};

/* Fills in the tree. A node with one card gets one group with that card. */
void place_tree_fill(struct place_tree *tree, const struct place_node *node);
