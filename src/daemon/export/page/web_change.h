/*
 * Changes requested over HTTP: POST /api/set, /api/pause, /api/resume and /api/unqueue. The body is the control protocol's
 * request (docs/reference/protocol.md) without `version` and `op`. Main thread only.
 */
#pragma once

#include <stddef.h>

struct node;

/*
 * Makes the change with the rights of a member of group "allot", and logs it. `operation` is the path after /api/; `body` is
 * NULL if there is none. Returns the control protocol's reply, which the caller frees, or NULL if out of memory. *ret_status is
 * the HTTP status.
 */
char *change_make(struct node *node, const char *operation, const char *body, size_t size,
		  unsigned *ret_status);
