/*
 * Closes file descriptors in threads of its own, because a peer can make close() block for long: by SO_LINGER, by a file of
 * FUSE or of a hung network file system, or by such descriptors in a unix socket's queue. The uid chooses the thread, so a
 * hanging thread affects only some users. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Takes ownership of fd. Does not block, unless memory or threads are short. Unread data of a socket is read first: otherwise
 * the peer could get ECONNRESET in place of the last reply.
 */
void closer_close(uid_t uid, int fd);
/* True if a close() hangs in the user's thread, or too many descriptors wait for it. Then accept no more from that user. */
bool closer_is_stuck(uid_t uid);
