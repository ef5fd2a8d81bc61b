/*
 * Receives messages to which the sender may have attached file descriptors (unix sockets). If a message is received without
 * room for its descriptors, the kernel closes them in this process, which can block forever (net/closer.h). So each message is
 * inspected before it is received.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct ancillary {
	struct ucred sender; /* zeroed unless ancillary_peek() was called with with_sender */
	bool has_fds;
};

/*
 * Copies the next message without removing it from the socket. Returns its size (for a packet the whole size, even above
 * `size`), 0 at the end of the stream, or -errno; -EAGAIN if there is no message.
 *
 * If has_fds is set, receive the message only by ancillary_take(), or give up the socket with closer_close(). Set with_sender
 * only for a socket with SO_PASSCRED: otherwise descriptors would take up the room that is meant for the sender. `uid` is the
 * peer's, for closer_close().
 */
ssize_t ancillary_peek(int fd, uid_t uid, void *data, size_t size, bool with_sender,
		       struct ancillary *ret);
/*
 * Receives the packet that ancillary_peek() inspected. Returns its first descriptor (close-on-exec), or -1 if it has none. The
 * caller must close this descriptor with closer_close(). All other descriptors of the packet are closed.
 */
int ancillary_take(int fd, uid_t uid);
