#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define SEND_FDS_MAX 16

/*
 * sendmsg(2) with `count` descriptors, at most SEND_FDS_MAX, attached (unix(7), SCM_RIGHTS). The caller still owns them. Returns
 * the number of bytes sent, or -1 and errno. Thread safe.
 */
static inline ssize_t send_fds(int socket, const void *data, size_t size, const int *fds,
			       unsigned count, int flags)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SEND_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (count) {
		message.msg_control = control.space;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(socket, &message, flags);
}
