/*
 * What of the cluster somebody looks at: a page of nodes and one of pods, by what was asked for, and one node that is open.
 * Pure, but for memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define VIEW_ROWS 50u        /* of a page */
#define VIEW_FROM_MAX 20000u /* behind that nobody looks: a filter is better */
#define VIEW_TEXT_MAX 254    /* names of Kubernetes */

enum view_order { VIEW_BY_NAME, VIEW_BY_MEMORY, VIEW_BY_CORES, VIEW_BY_SHARES, VIEW_ORDERS };

/* What a node is; of several the first. */
enum view_node_state {
	VIEW_ASIDE,     /* what it says of its cards can't be true */
	VIEW_UNHEALTHY, /* a card is */
	VIEW_CORDONED,  /* a card is */
	VIEW_FULL,      /* no card has anything left */
	VIEW_USED,
	VIEW_FREE, /* nothing is promised */
	VIEW_NODE_STATES
};

enum view_pod_state { VIEW_WAITING, VIEW_RESERVED, VIEW_BOUND, VIEW_ENDING, VIEW_POD_STATES };

extern const char *const view_node_states[VIEW_NODE_STATES], *const view_pod_states[VIEW_POD_STATES];

struct view {
	char node[VIEW_TEXT_MAX];          /* part of its name; "": all */
	char pod_namespace[VIEW_TEXT_MAX]; /* part of it: pods of these, and nodes that they are on */
	char open[VIEW_TEXT_MAX];          /* a node's name; "": none */
	unsigned node_states, pod_states; /* a bit each */
	enum view_order order;
	unsigned nodes_from, pods_from;
};

/* A value by the name of what is asked for: "node", "namespace", "open", "node_state", "pod_state", "order", "nodes_from", "pods_from". NULL: it is not. */
typedef const char *(*view_argument)(const void *data, const char *name);

/* What is not named is: all nodes by name, and pods that wait. -EINVAL with the value and what would be right. */
int view_read(view_argument argument, const void *data, struct view *ret, struct error *err);

/* ---- the first rows by some order, of any number that come in any ---- */

struct view_best {
	const void **thing; /* owned; in order */
	size_t count, most, seen;
	int (*compare)(const void *one, const void *other);
};

/* -ENOMEM. To be given back by view_best_free(). */
int view_best_new(struct view_best *ret, size_t most, int (*compare)(const void *, const void *));
void view_best_add(struct view_best *best, const void *thing);
void view_best_free(struct view_best *best);
