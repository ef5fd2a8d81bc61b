/*
 * The cards of a node as a tree: those that are nearer to each other than to the rest are a group, by
 * their way over PCIe alone (NVLink makes no tree). A common ancestor is one of all below it, so
 * groups never overlap.
 */
#pragma once

#include "policy/placement/node.h"

struct place_group {
	enum place_level level; /* the farthest that two of its cards are apart */
	int parent;             /* index of the group that it is in; -1: the whole node */
	uint64_t cards;         /* bit i: card i */
	bool numa_known;        /* all its cards are known to be of one NUMA node */
	unsigned numa;
};

/* Every group has two cards at least, and less than its parent: so there are fewer than cards. */
struct place_tree {
	unsigned count;
	struct place_group group[PLACE_MAX_CARDS]; /* each behind its parent; the first is the node */
};

/* A node of one card is a tree of one group, the only one with a single card. */
void place_tree_fill(struct place_tree *tree, const struct place_node *node);
