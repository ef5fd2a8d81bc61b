#include "library/sys/exchange.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "library/sys/sys.h"

static int connect_to(const char *path, uint64_t patience_ns)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = {
		.tv_sec = (time_t)(patience_ns / NS_PER_S),
		.tv_usec = (suseconds_t)(patience_ns % NS_PER_S / NS_PER_US),
	};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

/* Sends the process's credentials too, by which the daemon identifies the process if the kernel lacks SO_PEERPIDFD. */
static int send_request(int fd, const void *request, size_t size, int give_fd)
{
	struct ucred who = {
		.pid = (pid_t)syscall(SYS_getpid),
		.uid = (uid_t)syscall(SYS_getuid),
		.gid = (gid_t)syscall(SYS_getgid),
	};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(who)) + CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)request, size };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = give_fd < 0 ? CMSG_SPACE(sizeof(who)) : sizeof(control.space),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_len = CMSG_LEN(sizeof(who));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_CREDENTIALS;
	memcpy(CMSG_DATA(c), &who, sizeof(who));
	if (give_fd >= 0) {
		c = CMSG_NXTHDR(&message, c);
		c->cmsg_len = CMSG_LEN(sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(c), &give_fd, sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -errno;
}

/* Closes all unexpected descriptors, so that none leaks into the program. */
static void take_descriptors(struct msghdr *message, int fds[EXCHANGE_FDS_MAX])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (count <= EXCHANGE_FDS_MAX && fds[i] < 0)
				fds[i] = fd;
			else
				close(fd);
		}
	}
}

static int receive_reply(int fd, void *ret, size_t size, int fds[EXCHANGE_FDS_MAX])
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * (EXCHANGE_FDS_MAX + 2))];
	} control;
	struct iovec part = { ret, size };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);

	if (n < 0)
		return -errno;
	take_descriptors(&message, fds);
	if (n == 0)
		return -ECONNRESET;
	/* MSG_CTRUNC: the kernel dropped descriptors, because this process can open no more. */
	if (message.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	return n == (ssize_t)size ? 0 : -EPROTO;
}

int exchange(const char *path, uint64_t patience_ns, const void *request, size_t request_size,
	     int give_fd, void *ret_reply, size_t reply_size, int ret_fds[EXCHANGE_FDS_MAX])
{
	int fd = connect_to(path, patience_ns);

	for (int i = 0; i < EXCHANGE_FDS_MAX; i++)
		ret_fds[i] = -1;
	if (fd < 0)
		return fd;
	int error = send_request(fd, request, request_size, give_fd);
	if (!error)
		error = receive_reply(fd, ret_reply, reply_size, ret_fds);
	for (int i = 0; error && i < EXCHANGE_FDS_MAX; i++) {
		if (ret_fds[i] >= 0)
			close(ret_fds[i]);
		ret_fds[i] = -1;
	}
	close(fd);
	return error;
}

struct exchange_saved exchange_begin(void)
{
	struct exchange_saved saved = { .error = errno };
	uint64_t all = ~0ULL;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved.signals, sizeof(all));
	return saved;
}

void exchange_end(struct exchange_saved saved)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved.signals, NULL, sizeof(saved.signals));
	errno = saved.error;
}
