/*
 * Closes descriptors that a peer may have influenced. close() of such a descriptor can block for as long as the peer likes: a
 * socket with SO_LINGER, a file of FUSE or of a hung network file system, or a unix socket whose queue contains such
 * descriptors. So threads close them. The uid determines the thread, so that a thread that hangs affects only some users.
 * Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Closes fd without blocking the caller, who must not use it any more. A socket is read empty first, so that the peer can still
 * read our reply.
 */
void closer_close(uid_t uid, int fd);
/* Whether descriptors of that user currently can't be closed. If so, accept no more from that user. */
bool closer_is_stuck(uid_t uid);
