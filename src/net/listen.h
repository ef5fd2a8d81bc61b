/* The daemon's sockets in the file system. */
#pragma once

#include "base/error.h"

/*
 * A unix socket of this type (SOCK_STREAM, SOCK_SEQPACKET), bound to `path` in place of what was there, and
 * not yet listening: until then nobody can connect, so the caller sets the file's owner and mode first.
 * Returns the descriptor, close-on-exec and non-blocking, which the caller closes; or a negative errno.
 */
int listen_bind(const char *path, int type, struct error *err);
