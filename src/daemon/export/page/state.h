/*
 * The page's state as JSON (docs/reference/protocol.md, "The page's state"). It uses the names of `allot ps --json` but has
 * fewer members, and adds which tenant had which card when. Main thread only.
 */
#pragma once

#include "daemon/export/page/history.h"
#include "daemon/export/page/state_text.h"
#include "daemon/state/node/node.h"

/* The spans of each card that a series of states has reported already. Zero it to start a series. */
struct page_told {
	uint64_t spans[NODE_MAX_CARDS];
};

/* Writes one object; *s must be empty. */
void page_state_write(struct node *node, struct page_told *told, struct state_text *s);
/* Adds a new moment to the history. */
void page_state_sample(struct node *node, struct history *history);
