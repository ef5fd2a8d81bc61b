/*
 * One GET request over a link, as HTTP/1.0: so the server closes the connection after its answer,
 * and must not send the answer in chunks (RFC 1945; RFC 9112, 6.1 and 6.3).
 */
#pragma once

#include "net/link.h"

/*
 * Sends the request and reads the answer. `path` is sent unchanged, so it must not contain spaces or control characters. On
 * status 200 returns 0 and the body, which the caller frees and which is followed by a NUL. Returns -ENOENT for status 404,
 * -EPROTO for another status or an answer that is not HTTP, -EMSGSIZE for more than most_bytes.
 */
int engine_http_get(const struct net_link *link, const char *path, size_t most_bytes,
		    char **ret_body, size_t *ret_size);

/* Parses a complete answer. *ret_body is the offset of the body. Errors as for engine_http_get(). Pure. */
int engine_http_parse(const char *text, size_t size, size_t *ret_body);
