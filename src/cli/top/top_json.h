/* Makes the output of `allot top --json` (docs/reference/protocol.md). No I/O and no clock. */
#pragma once

#include <jansson.h>

#include "cli/top/data/history.h"

/*
 * Makes the report: the daemon's list, with "rates" in each tenant's devices, and the containers of `tasks`. Changes `list`,
 * whose snapshot must have been passed to history_update(). `list`, `tasks` or both may be NULL. Returns NULL if out of memory.
 * The caller owns the result.
 */
json_t *report_make(json_t *list, json_t *tasks, const struct history *history);
