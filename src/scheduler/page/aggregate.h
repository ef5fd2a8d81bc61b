/*
 * Summarizes for the web page how much of each node's cards is assigned. A summary is valid until the model changes. Call from
 * the model's thread.
 */
#pragma once

#include "scheduler/model/model_inside.h"
#include "scheduler/page/view.h"

/* Sums over cards. Amounts named promised_ are assigned to pods, used or not. */
struct aggregate_sum {
	uint64_t memory_bytes, promised_bytes;
	uint64_t cores_mpct, promised_mpct;
	unsigned cards, unhealthy, cordoned;
	uint64_t shares; /* shares of cards that containers have */
};

struct aggregate_node {
	const struct model_node *node;
	struct aggregate_sum sum;
	enum view_node_state state;
};

struct aggregate {
	/* Nodes that have cards or whose description of their cards was rejected; owned. */
	struct aggregate_node *node;
	size_t count;
	struct aggregate_sum sum;
	size_t nodes_without, nodes_rejected;
	/* numbers of pods: all in the model; waiting for cards; with cards reserved, but not bound */
	size_t pods, waiting, reserved;
};

/* Returns 0 or -ENOMEM. Free *ret with aggregate_free(). */
int aggregate_make(const struct model *model, struct aggregate *ret);
void aggregate_free(struct aggregate *aggregate);

enum view_pod_state aggregate_pod_state(const struct model_pod *pod);

/*
 * Find the nodes (struct aggregate_node) or pods (struct model_pod) that a view (view.h) shows, in its order. Return 0 or
 * -ENOMEM. Free *ret with view_best_free().
 */
int aggregate_nodes(const struct aggregate *aggregate, const struct view *view,
		    struct view_best *ret);
int aggregate_pods(const struct model *model, const struct view *view, struct view_best *ret);
/* Finds the node's first `most` pods in order of name. The result is as from aggregate_pods(). */
int aggregate_pods_of(const struct model_node *node, size_t most, struct view_best *ret);
