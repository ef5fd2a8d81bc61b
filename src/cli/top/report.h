/* What `allot top --json` prints (docs/reference/protocol.md). Pure. */
#pragma once

#include <jansson.h>

#include "cli/top/data/history.h"

/*
 * The daemon's list, with "rates" in each tenant's devices and the containers of its tasks. Replies may be NULL. The
 * history was fed with the snapshot of that list. NULL when out of memory. The caller owns the report; the list is
 * changed by it.
 */
json_t *report_make(json_t *list, json_t *tasks, const struct history *history);
