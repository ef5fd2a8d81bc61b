/* Makes the output of `allot top --json` (docs/reference/protocol.md). No I/O and no clock. */
#pragma once

#include <jansson.h>

#include "cli/top/data/history.h"

/*
 * The report is the daemon's list, with "rates" in each tenant's devices, and the containers of `tasks`. Adds the rates to
 * `list` itself. The last call of history_update() must have had the snapshot made from `list`. `list` and `tasks` may be NULL.
 * The caller owns the result; NULL if out of memory.
 */
json_t *report_make(json_t *list, json_t *tasks, const struct history *history);
