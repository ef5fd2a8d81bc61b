/* Finds the handler of a request (docs/reference/protocol.md). Main thread only. */
#pragma once

#include <stddef.h>

struct session;

/*
 * Answers one request: `length` bytes without the newline. Returns the reply with its newline, for the caller to free; NULL if
 * out of memory.
 */
char *dispatch_request(struct session *session, const char *line, size_t length);
