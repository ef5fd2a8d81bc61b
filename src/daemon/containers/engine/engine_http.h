/*
 * One GET over a link, as HTTP/1.0: the server ends the connection behind its answer, which comes in one
 * piece (RFC 1945; RFC 9112, 6.1 and 6.3: no chunks to such a client).
 */
#pragma once

#include "net/link.h"

/*
 * `path` goes out as it is: no spaces, no control characters. The body of a 200 is the caller's, NUL behind
 * it. -ENOENT: a 404; -EPROTO: another status, or no HTTP; -EMSGSIZE: more than most_bytes.
 */
int engine_http_get(const struct net_link *link, const char *path, size_t most_bytes,
		    char **ret_body, size_t *ret_size);

/* Of an answer that is there whole: where the body begins in it. As above. Pure. */
int engine_http_parse(const char *text, size_t size, size_t *ret_body);
