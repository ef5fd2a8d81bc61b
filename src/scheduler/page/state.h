/*
 * What the page shows of a cluster, as JSON (docs/reference/protocol.md, "The cluster's page"): all of what a view shows, or what is
 * otherwise of it than was told. The model's thread.
 */
#pragma once

#include "scheduler/page/aggregate.h"
#include "scheduler/page/reasons.h"
#include "scheduler/page/told.h"

#define STATE_PODS_OF_NODE 200 /* that are named of the node that is open */

struct page_cluster {
	const struct model *model;
	const struct aggregate *aggregate;
	struct reasons *reasons;
	bool is_ready, leads;
	const char *node_url; /* web_node_url; "none": none */
	uint64_t now_ns;
};

/* Members of an object that is begun. True: something was written. -ENOMEM is noted in `t`. */
bool page_cluster_write(const struct page_cluster *c, const struct view *view, struct told *told,
			struct json_text *t);

#define PAGE_URL_NODE "{node}"
/* Where a node's own page is: `pattern` with the name in place of each "{node}", cut at `size`. Pure. */
void page_node_url(const char *pattern, const char *node, char *text, size_t size);
