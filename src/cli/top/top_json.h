/* What `allot top --json` prints (docs/reference/protocol.md). Pure. */
#pragma once

#include <jansson.h>

#include "cli/top/data/history.h"

/*
 * Makes the daemon's list with "rates" in each tenant's devices and the containers of its tasks. Both replies may be
 * NULL. The snapshot of `list` must have been fed to the history. Returns NULL if out of memory. The caller owns the
 * report. The list is modified.
 */
json_t *report_make(json_t *list, json_t *tasks, const struct history *history);
