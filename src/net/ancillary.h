/*
 * Messages on a unix socket whose peer may send descriptors. If such a message is received without room for descriptors, the
 * kernel closes them in this process, which can block forever (net/closer.h). So a message is inspected before it is received.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The ancillary data of one message. */
struct ancillary {
	struct ucred sender; /* zeroed without SO_PASSCRED */
	bool has_fds;
};

/*
 * Copies the next data and leaves it in the socket. Returns its size (for a packet the whole size, even if larger than `size`),
 * 0 at the end of the stream, or -errno; -EAGAIN if there is nothing. If has_fds is set, only ancillary_take() may receive the
 * message; or give up the socket with closer_close(). Set with_sender only for a socket with SO_PASSCRED: otherwise descriptors
 * would fill the room for the sender. `uid` is the peer's.
 */
ssize_t ancillary_peek(int fd, uid_t uid, void *data, size_t size, bool with_sender,
		       struct ancillary *ret);
/*
 * Receives the inspected packet and returns its first descriptor, which is close-on-exec. The caller owns it, and must close it
 * with closer_close(); further descriptors are closed that way too. Returns -1 if there is none.
 */
int ancillary_take(int fd, uid_t uid);
