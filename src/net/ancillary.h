/*
 * Messages of a unix socket whose peer may send descriptors along. Receiving such a message without room
 * for them makes the kernel close them here, which can wait for ever (net/closer.h). So a message is
 * looked at before it is taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The ancillary data of one message. */
struct ancillary {
	struct ucred sender; /* zeros without SO_PASSCRED */
	bool has_fds;
};

/*
 * Copies what comes next and leaves it in the socket. Returns its size, of a packet its whole size even
 * where that is more than `size`; 0: the end; -errno, -EAGAIN when nothing is there. After has_fds it must
 * not be received but by ancillary_take(): closer_close() the socket. with_sender: only of a socket with SO_PASSCRED, or the
 * room for the sender would be filled with descriptors. `uid`: the peer's.
 */
ssize_t ancillary_peek(int fd, uid_t uid, void *data, size_t size, bool with_sender,
		       struct ancillary *ret);
/*
 * Takes the packet that was looked at and its first descriptor, which is close-on-exec and the caller's: to be
 * given to closer_close(), as others that came with it are. -1: there is none.
 */
int ancillary_take(int fd, uid_t uid);
