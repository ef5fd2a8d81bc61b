/*
 * The control protocol (docs/reference/protocol.md): finds the handler of a request. Main thread only.
 */
#pragma once

#include <stddef.h>

struct session;

/*
 * Answers one request. `line` has `length` bytes, without the newline. Returns the reply as one line with a newline; the caller
 * frees it. Returns NULL if out of memory.
 */
char *dispatch_request(struct session *session, const char *line, size_t length);
