/*
 * Summarizes why a pod waits. An explanation (scheduler/explain/explain.h) may list thousands of nodes. The summary has one
 * line of text, groups of nodes with the same reason, and the nodes that lack least. Pure, except for memory.
 */
#pragma once

#include <jansson.h>

#include "http/dashboard/json_text.h"

#define WHY_GROUPS 4  /* limit of written groups; the nodes of other groups are only counted */
#define WHY_NEAREST 3 /* limit of nodes in "nearest" */

/*
 * Writes {"says", "groups": [{"nodes", "node": the first, "why", "reasons"}], "more_nodes": nodes in other groups, "nearest":
 * [{"node", "cards", "memory_mib", "cores_pct"}], "quotas"}; see docs/reference/protocol.md.
 */
void wait_summary_write(const json_t *explanation, struct json_text *t);
