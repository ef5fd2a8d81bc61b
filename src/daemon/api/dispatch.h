/*
 * The control protocol (docs/reference/protocol.md): finds the handler of a request. Main thread only.
 */
#pragma once

#include <stddef.h>

struct session;

/*
 * Answers one request (a line, without its end). The reply is one line with its end, to be freed;
 * NULL: out of memory.
 */
char *dispatch_request(struct session *session, const char *line, size_t length);
