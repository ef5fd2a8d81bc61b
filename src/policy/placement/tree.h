/*
 * A node's GPUs as a tree of groups. GPUs of one group are nearer to each other by PCIe paths than to other GPUs. (NVLink forms
 * no tree.) Groups never overlap: the lowest common PCIe ancestor of two GPUs is an ancestor of all GPUs below it.
 */
#pragma once

#include "policy/placement/place_node.h"

struct place_group {
	enum place_level level; /* the longest path between two GPUs of the group */
	int parent;             /* index of the group around this group; -1 for the whole node */
	uint64_t cards;         /* bit i: card i is in the group */
	bool numa_known;        /* all GPUs of the group are known to be of one NUMA node */
	unsigned numa;
};

/* Each group below the root has at least two cards, and fewer than its parent. So there are never more groups than cards. */
struct place_tree {
	unsigned count;
	/* each group comes after its parent; the first group is the whole node */
	struct place_group group[PLACE_MAX_CARDS];
};

/* A node with one GPU gets one group with that GPU. */
void place_tree_fill(struct place_tree *tree, const struct place_node *node);
