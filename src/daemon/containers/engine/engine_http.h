/*
 * Makes one GET request in HTTP/1.0: the server closes the connection after its answer, and must not send chunks (RFC 1945; RFC
 * 9112, 6.1 and 6.3).
 */
#pragma once

#include "net/link.h"

/*
 * Sends GET `path` and reads the answer. `path` is sent unchanged, so it must have no spaces or control characters. On status
 * 200 returns 0 and the body, followed by a NUL, for the caller to free. Returns -ENOENT for 404, -EPROTO for another status or
 * an answer that is not HTTP, -EMSGSIZE above most_bytes.
 */
int engine_http_get(const struct net_link *link, const char *path, size_t most_bytes,
		    char **ret_body, size_t *ret_size);

/* Parses a complete answer. *ret_body is the body's offset. Errors as for engine_http_get(). Pure. */
int engine_http_parse(const char *text, size_t size, size_t *ret_body);
