/* Descriptors that a hostile process sends: for one of them close() takes thirty seconds. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd/send_fds.h"

/* Include cmocka.h before this file. */

struct foreign_lingering {
	int fd;   /* lingers, with bytes that its peer does not take */
	int peer; /* closing this ends the lingering of fd */
};

static inline void foreign_linger(struct foreign_lingering *ret)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	struct linger linger = { .l_onoff = 1, .l_linger = 30 };
	static char bytes[65536];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int small = 4096;
	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	ret->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ret->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ret->peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(ret->peer >= 0);
	close(listener);
	assert_int_equal(setsockopt(ret->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	/* Send more than the buffers take, so that close() waits for the peer to read. */
	struct pollfd room = { .fd = ret->fd, .events = POLLOUT };
	while (poll(&room, 1, 100) > 0)
		assert_true(send(ret->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0);
}

/* Closes this process's descriptor. That does not wait, because the receiver of its copy still has the socket open. */
static inline void foreign_let_go(struct foreign_lingering *l)
{
	close(l->fd);
}

static inline void foreign_end(struct foreign_lingering *l)
{
	close(l->peer);
}

/* Sends a message with a descriptor. */
static inline void foreign_send(int socket, const void *data, size_t size, int fd)
{
	assert_int_equal(send_fds(socket, data, size, &fd, 1, 0), size);
}

/* Receives a message of one byte. Returns its descriptor. */
static inline int foreign_receive(int socket)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	int fd;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	assert_int_equal(recvmsg(socket, &message, MSG_CMSG_CLOEXEC), 1);
	assert_non_null(CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}
