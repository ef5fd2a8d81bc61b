#pragma once

#include "base/error.h"

/*
 * Makes a unix socket of this type (SOCK_STREAM, SOCK_SEQPACKET) and binds it to `path`, replacing what was there. The socket
 * does not listen yet, so nobody can connect before the caller has set the file's owner and mode. Returns a close-on-exec,
 * non-blocking descriptor, which the caller closes, or -errno.
 */
int listen_bind(const char *path, int type, struct error *err);
