#include "net/ancillary.h"

#include <errno.h>
#include <string.h>

#include "net/closer.h"

#define FDS_MOST 253 /* SCM_MAX_FD of Linux, include/net/scm.h */

/*
 * Closes the descriptors in `c`. If ret_first is not NULL and *ret_first is -1, stores the first descriptor there and does not
 * close it. After a peek these are duplicates: the message in the socket's queue still keeps their files open.
 */
static void give_up_fds(const struct cmsghdr *c, uid_t uid, int *ret_first)
{
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < count; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (ret_first && *ret_first < 0)
			*ret_first = fd;
		else
			closer_close(uid, fd);
	}
}

ssize_t ancillary_peek(int fd, uid_t uid, void *data, size_t size, bool with_sender,
		       struct ancillary *ret)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = with_sender ? control.space : NULL,
				  .msg_controllen = with_sender ? sizeof(control.space) : 0 };
	ssize_t n = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	if (n < 0)
		return -errno;
	*ret = (struct ancillary){ .has_fds = message.msg_flags & MSG_CTRUNC };
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(ret->sender)))
			memcpy(&ret->sender, CMSG_DATA(c), sizeof(ret->sender));
		if (c->cmsg_type == SCM_RIGHTS) {
			ret->has_fds = true;
			give_up_fds(c, uid, NULL);
		}
	}
	return n;
}

int ancillary_take(int fd, uid_t uid)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FDS_MOST * sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = sizeof(byte) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	int first = -1;
	if (recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			give_up_fds(c, uid, &first);
	return first;
}
