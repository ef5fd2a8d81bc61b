/*
 * Makes changes that are requested over HTTP, by POST /api/set, /api/pause, /api/resume and /api/unqueue. The body is a request
 * of docs/reference/protocol.md without `version` and `op`. Main thread only.
 */
#pragma once

#include <stddef.h>

struct node;

/*
 * Makes the change, with the rights of group "allot", and logs it. `operation` is the path after /api/; `body` may be NULL.
 * Returns the protocol's reply, for the caller to free, or NULL if out of memory. *ret_status is the HTTP status.
 */
char *change_make(struct node *node, const char *operation, const char *body, size_t size,
		  unsigned *ret_status);
