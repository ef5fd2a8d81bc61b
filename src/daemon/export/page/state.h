/*
 * The page's state as JSON (docs/reference/protocol.md, "The page's state"). It uses the names of `allot ps --json` but has
 * fewer members, and adds which tenant had which card when. Main thread only.
 */
#pragma once

#include "daemon/export/page/history.h"
#include "daemon/export/page/state_text.h"
#include "daemon/state/node/node.h"

/*
 * For each card, the number of the last lease span that was written. Keep it from one state to the next, so that each span is
 * reported once. Zero it to start a series of states.
 */
struct page_told {
	uint64_t spans[NODE_MAX_CARDS];
};

/* Writes the current state as one JSON object; *s must be empty. */
void page_state_write(struct node *node, struct page_told *told, struct state_text *s);
/* Begins a sampling in the history and adds a sample of each tenant on each of its cards. */
void page_state_sample(struct node *node, struct history *history);
