/*
 * What the page shows, as JSON (docs/reference/protocol.md, "The page's state"): the names of `allot ps --json`, less of them, and who
 * had which card when. Main thread only.
 */
#pragma once

#include "daemon/export/page/history.h"
#include "daemon/export/page/state_text.h"
#include "daemon/state/node/node.h"

/* What a series of states has told already of each card's spans. All 0: nothing. */
struct page_told {
	uint64_t spans[NODE_MAX_CARDS];
};

/* One object, to an empty text. */
void page_state_write(struct node *node, struct page_told *told, struct state_text *s);
/* The next moment of the history. */
void page_state_sample(struct node *node, struct history *history);
