/*
 * A view: what a reader of the web page sees. It has a page of nodes, a page of pods, and details of one node, the open one.
 * No I/O.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define VIEW_ROWS 50u /* rows per page */
/* the last row at which a page may start; to see later rows, a user must filter */
#define VIEW_FROM_MAX 20000u
#define VIEW_TEXT_MAX 254 /* names in Kubernetes have at most 253 bytes */

enum view_order { VIEW_BY_NAME, VIEW_BY_MEMORY, VIEW_BY_CORES, VIEW_BY_SHARES, VIEW_ORDERS };

/* A node's state is the first of these that applies. */
enum view_node_state {
	VIEW_ASIDE,     /* the description of its cards was rejected */
	VIEW_UNHEALTHY, /* some card is unhealthy */
	VIEW_CORDONED,  /* some card is cordoned */
	VIEW_FULL,      /* every card lacks free memory, free compute or free slots */
	VIEW_USED,
	VIEW_FREE, /* nothing is assigned */
	VIEW_NODE_STATES
};

enum view_pod_state { VIEW_WAITING, VIEW_RESERVED, VIEW_BOUND, VIEW_ENDING, VIEW_POD_STATES };

extern const char *const view_node_states[VIEW_NODE_STATES], *const view_pod_states[VIEW_POD_STATES];

struct view {
	char node[VIEW_TEXT_MAX]; /* part of the node's name; "" for all nodes */
	/* part of a namespace's name: selects pods of such namespaces, and nodes with such pods; "" for all */
	char pod_namespace[VIEW_TEXT_MAX];
	char open[VIEW_TEXT_MAX];         /* name of the open node; "" for none */
	unsigned node_states, pod_states; /* bit i is set if state i is shown */
	enum view_order order;
	unsigned nodes_from, pods_from;
};

/*
 * Callback of view_read(): returns the value of the argument `name`, or NULL if the page's user did not give it. Names: "node",
 * "namespace", "open", "node_state", "pod_state", "order", "nodes_from", "pods_from".
 */
typedef const char *(*view_argument)(const void *data, const char *name);

/*
 * By default, a view shows all nodes by name, and the pods that wait or have a reservation. On -EINVAL, err has the value and
 * what would be right.
 */
int view_read(view_argument argument, const void *data, struct view *ret, struct error *err);

struct view_best {
	const void **thing;       /* the kept items, in compare()'s order; owned */
	size_t count, most, seen; /* numbers of items: kept, kept at most, added so far */
	int (*compare)(const void *one, const void *other);
};

/*
 * Makes an empty list, which keeps only the `most` items that are first by compare(). Returns 0 or -ENOMEM. Free with
 * view_best_free().
 */
int view_best_new(struct view_best *ret, size_t most, int (*compare)(const void *, const void *));
void view_best_add(struct view_best *best, const void *thing);
void view_best_free(struct view_best *best);
