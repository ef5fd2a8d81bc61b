/*
 * Writes what the page shows of a cluster as JSON (docs/reference/protocol.md, "The cluster's page"): everything that a view
 * shows, or only what has changed since the last event. Call from the model's thread.
 */
#pragma once

#include "scheduler/page/aggregate.h"
#include "scheduler/page/reasons.h"
#include "scheduler/page/told.h"

#define STATE_PODS_OF_NODE 200 /* most pods that are listed for the open node */

struct page_cluster {
	const struct model *model;
	const struct aggregate *aggregate;
	struct reasons *reasons;
	bool is_ready, leads;
	const char *node_url; /* web_node_url; "none" if nodes have no pages */
	uint64_t now_ns;
};

/*
 * Writes what the view shows as members of the object that is open in `t`, but only what differs from *told, and updates *told.
 * Returns true if something was written. If memory runs out, this is recorded in `t`.
 */
bool page_cluster_write(const struct page_cluster *c, const struct view *view, struct told *told,
			struct json_text *t);

#define PAGE_URL_NODE "{node}"
/*
 * Writes the address of a node's own page: `pattern` with the node's name in place of each "{node}". The text is cut at
 * `size` bytes. Pure.
 */
void page_node_url(const char *pattern, const char *node, char *text, size_t size);
