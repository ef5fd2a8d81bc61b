/*
 * Writes the page's content as JSON (docs/reference/protocol.md, "The cluster's page"): all of it, or the changes since the
 * last event. Call from the model's thread.
 */
#pragma once

#include "scheduler/page/aggregate.h"
#include "scheduler/page/reasons.h"
#include "scheduler/page/delta.h"

#define STATE_PODS_OF_NODE 200 /* limit of the pods listed for the open node (view.h) */

struct page_cluster {
	const struct model *model;
	const struct aggregate *aggregate;
	struct reasons *reasons;
	bool is_ready, leads;
	const char *node_url; /* the setting web_node_url; "none" if nodes have no pages */
	uint64_t now_ns;
};

/*
 * Writes what the view shows into the open object of `t`, except what *sent says that the reader has, and updates *sent.
 * Returns whether anything was written. If memory runs out, `t` is marked as failed.
 */
bool page_cluster_write(const struct page_cluster *c, const struct view *view,
			struct sent_state *sent, struct json_text *t);

#define PAGE_URL_NODE "{node}"
/* Writes the address of a node's own page: `pattern` with the node's name for each "{node}", cut at `size` bytes. Pure. */
void page_node_url(const char *pattern, const char *node, char *text, size_t size);
