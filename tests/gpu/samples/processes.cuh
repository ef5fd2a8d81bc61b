/* A second process of a sample: forked before CUDA is used, with a socket between the two. */
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>

#include "sample.cuh"

struct second {
	int pid = -1, socket = -1;
};

/* Runs child(socket) in a new process, which ends with status 0 when that returns. */
inline second start_second(const std::function<void(int)> &child)
{
	second s;
	int ends[2];

	expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
	fflush(stdout);
	s.pid = fork();
	expect(s.pid >= 0, "a second process");
	if (s.pid == 0) {
		close(ends[0]);
		child(ends[1]);
		fflush(stdout);
		exit(0);
	}
	close(ends[1]);
	s.socket = ends[0];
	return s;
}

inline void end_second(const second &s)
{
	int status = -1;

	close(s.socket);
	expect(waitpid(s.pid, &status, 0) == s.pid && status == 0, "the second process ends well");
}

template <typename T> void send_value(int socket, const T &value)
{
	expect(send(socket, &value, sizeof(value), MSG_NOSIGNAL) == (ssize_t)sizeof(value),
	       "the other process listens");
}

template <typename T> T receive_value(int socket)
{
	T value;

	expect(recv(socket, &value, sizeof(value), MSG_WAITALL) == (ssize_t)sizeof(value),
	       "the other process answers");
	return value;
}

/* A file descriptor, with a byte as messages need. */
inline void send_fd(int socket, int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = {};
	iovec data = { &byte, 1 };
	msghdr message = {};

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = space;
	message.msg_controllen = sizeof(space);
	cmsghdr *rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	expect(sendmsg(socket, &message, MSG_NOSIGNAL) == 1, "a descriptor is sent");
}

inline int receive_fd(int socket)
{
	char byte, space[CMSG_SPACE(sizeof(int))] = {};
	iovec data = { &byte, 1 };
	msghdr message = {};
	int fd = -1;

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = space;
	message.msg_controllen = sizeof(space);
	expect(recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message),
	       "a descriptor is received");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}
