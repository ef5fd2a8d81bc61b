/*
 * Writes the page's state as JSON (docs/reference/protocol.md, "The page's state"). The state lacks some members of `allot ps
 * --json`, but also tells which tenant had which card when. Main thread only.
 */
#pragma once

#include "daemon/export/page/history.h"
#include "daemon/export/page/state_text.h"
#include "daemon/state/node/node.h"

/*
 * For each card, the number of the last ended lease span (lease_spans.h: a time in which one tenant had the card) that was
 * written. So a series of states contains each ended span once. Zero the struct to begin a series.
 */
struct page_sent {
	uint64_t spans[NODE_MAX_CARDS];
};

/* Writes the present state. *s must be empty. */
void page_state_write(struct node *node, struct page_sent *sent, struct state_text *s);
/* Adds to the history a sample of each tenant on each of its cards. */
void page_state_sample(struct node *node, struct history *history);
