/*
 * Why a pod waits, as `allot explain` says it, but in short: an explanation (scheduler/explain/explain.h) of thousands of nodes becomes a
 * line, the nodes that are alike together, and those that lack least. Pure, but for memory.
 */
#pragma once

#include <jansson.h>

#include "http/dashboard/json_text.h"

#define WHY_GROUPS 4
#define WHY_NEAREST 3

/*
 * An object: {"says", "groups": [{"nodes", "node": the first, "why", "reasons"}], "more_nodes": of other groups, "nearest":
 * [{"node", "cards", "memory_mib", "cores_pct"}], "quotas"}. docs/reference/protocol.md has the members.
 */
void why_write(const json_t *explanation, struct json_text *t);
