/*
 * The cluster in one aggregate, for all readers of the page: of each node what is promised of its cards together. Valid until the
 * model changes. The model's thread.
 */
#pragma once

#include "scheduler/model/model_inside.h"
#include "scheduler/page/view.h"

struct aggregate_sum {
	uint64_t memory_bytes, promised_bytes;
	uint64_t cores_mpct, promised_mpct;
	unsigned cards, unhealthy, cordoned;
	uint64_t shares; /* containers on cards */
};

struct aggregate_node {
	const struct model_node *node;
	struct aggregate_sum sum;
	enum view_node_state state;
};

struct aggregate {
	struct aggregate_node *node; /* that have cards, or lie about them; owned */
	size_t count;
	struct aggregate_sum sum;
	size_t nodes_without, nodes_aside;
	size_t pods, waiting, reserved; /* that are known, and of these */
};

/* -ENOMEM. To be given back by aggregate_free(). */
int aggregate_make(const struct model *model, struct aggregate *ret);
void aggregate_free(struct aggregate *aggregate);

enum view_pod_state aggregate_pod_state(const struct model_pod *pod);
/* It asks for cards, or has some. */
bool aggregate_is_of_cards(const struct model_pod *pod);

/* What a view shows, in its order: things are aggregate_node, and model_pod. -ENOMEM. To be given back by view_best_free(). */
int aggregate_nodes(const struct aggregate *aggregate, const struct view *view,
		    struct view_best *ret);
int aggregate_pods(const struct model *model, const struct view *view, struct view_best *ret);
/* All that a node has, by name. */
int aggregate_pods_of(const struct model_node *node, size_t most, struct view_best *ret);
