/*
 * The cluster at one look, for all readers of the page: of each node what is promised of its cards together. Valid until the
 * model changes. The model's thread.
 */
#ifndef ALLOT_SCHEDULER_PAGE_LOOK_H
#define ALLOT_SCHEDULER_PAGE_LOOK_H

#include "scheduler/model/model_inside.h"
#include "scheduler/page/view.h"

struct look_sum {
	uint64_t memory_bytes, promised_bytes;
	uint64_t cores_mpct, promised_mpct;
	unsigned cards, unhealthy, cordoned;
	uint64_t shares; /* containers on cards */
};

struct look_node {
	const struct model_node *node;
	struct look_sum sum;
	enum view_node_state state;
};

struct look {
	struct look_node *node; /* that have cards, or lie about them; owned */
	size_t count;
	struct look_sum sum;
	size_t nodes_without, nodes_aside;
	size_t pods, waiting, reserved; /* that are known, and of these */
};

/* -ENOMEM. To be given back by look_free(). */
int look_make(const struct model *model, struct look *ret);
void look_free(struct look *look);

enum view_pod_state look_pod_state(const struct model_pod *pod);
/* It asks for cards, or has some. */
bool look_is_of_cards(const struct model_pod *pod);

/* What a view shows, in its order: things are look_node, and model_pod. -ENOMEM. To be given back by view_best_free(). */
int look_nodes(const struct look *look, const struct view *view, struct view_best *ret);
int look_pods(const struct model *model, const struct view *view, struct view_best *ret);
/* All that a node has, by name. */
int look_pods_of(const struct model_node *node, size_t most, struct view_best *ret);

#endif
