/*
 * Closes descriptors that a peer had a hand in. close() of such a one can wait for as long as the peer
 * likes: a socket with SO_LINGER, a file of a FUSE or a hung network file system, or a unix socket in
 * whose queue such descriptors lie. So a thread closes them, one for all users with the same remainder
 * of the uid, which holds up nobody but those. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Takes fd over and never waits. A socket is emptied first, so that its peer gets to read our reply. */
void closer_close(uid_t uid, int fd);
/* Descriptors of that user can't be closed just now: take no more of it. */
bool closer_is_stuck(uid_t uid);
