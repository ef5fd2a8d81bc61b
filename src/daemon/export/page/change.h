/*
 * Changes that are asked for by HTTP: POST /api/set, /api/pause, /api/resume and /api/unqueue, whose body is the control
 * protocol's request (docs/reference/protocol.md) without `version` and `op`. Main thread only.
 */
#pragma once

#include <stddef.h>

struct node;

/*
 * Makes it (`operation`: what stands behind /api/), as a member of group allot may, and says so in the log. Returns the reply of the control protocol, to be freed;
 * NULL: out of memory. *ret_status is HTTP's for it. `body` NULL: none.
 */
char *change_make(struct node *node, const char *operation, const char *body, size_t size,
		  unsigned *ret_status);
