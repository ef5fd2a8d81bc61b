#include "daemon/tasks/watch/exec_events.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENT_AT (NLMSG_HDRLEN + offsetof(struct cn_msg, data))
#define WHAT_AT (EVENT_AT + offsetof(struct proc_event, what))

struct answer {
	struct nlmsghdr header;
	char rest[1024];
};

/* Attaches a filter that lets only exec events through. BPF_LD reads big-endian words, hence htonl(). */
static int set_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WHAT_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

static int subscribe(int fd)
{
	struct {
		struct nlmsghdr header;
		char rest[64];
	} message = { 0 };
	struct cn_msg cn = { .id = { CN_IDX_PROC, CN_VAL_PROC },
			     .len = sizeof(enum proc_cn_mcast_op) };
	enum proc_cn_mcast_op op = PROC_CN_MCAST_LISTEN;
	size_t length = NLMSG_LENGTH(sizeof(cn) + sizeof(op));
	message.header = (struct nlmsghdr){ .nlmsg_len = (unsigned)length,
					    .nlmsg_type = NLMSG_DONE };
	memcpy(NLMSG_DATA(&message.header), &cn, sizeof(cn));
	memcpy((char *)NLMSG_DATA(&message.header) + sizeof(cn), &op, sizeof(op));
	return send(fd, &message, length, 0) < 0 ? -errno : 0;
}

/* Receives one message. Returns true for an event of the kernel; false for another message (*ret_error 0) or an error. */
static bool receive(int fd, int flags, struct proc_event *ret, int *ret_error)
{
	struct answer answer;
	struct sockaddr_nl from = { 0 };
	socklen_t from_size = sizeof(from);
	ssize_t n = recvfrom(fd, &answer, sizeof(answer), flags, (struct sockaddr *)&from,
			     &from_size);
	*ret_error = n < 0 && errno != EINTR ? -errno : 0;
	/* A process may send to a netlink socket, too. Only messages of port 0 come from the kernel. */
	if (from.nl_pid != 0 ||
	    n < (ssize_t)(EVENT_AT + offsetof(struct proc_event, event_data) + 4))
		return false;
	size_t size = (size_t)n - EVENT_AT;
	*ret = (struct proc_event){ 0 };
	memcpy(ret, (char *)&answer + EVENT_AT, size < sizeof(*ret) ? size : sizeof(*ret));
	return true;
}

/* Waits for the kernel's answer. If the kernel lacks support, no answer comes, and the wait times out. */
static int read_answer(int fd)
{
	struct timeval limit = { .tv_usec = 200000 };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	for (unsigned i = 0; i < 1000; i++) {
		struct proc_event event;
		int error;
		if (receive(fd, 0, &event, &error) && event.what == PROC_EVENT_NONE)
			return -(int)event.event_data.ack.err;
		if (error < 0)
			return error == -EAGAIN ? -EPERM : error;
	}
	return 0; /* so many events arrived that the subscription must work */
}

int exec_events_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
	if (fd < 0)
		return -errno;
	int r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	if (r >= 0)
		r = subscribe(fd);
	if (r >= 0)
		r = read_answer(fd);
	if (r >= 0)
		r = set_filter(fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

int exec_events_read(int fd)
{
	for (;;) {
		struct proc_event event;
		int error;
		if (receive(fd, MSG_DONTWAIT, &event, &error) && event.what == PROC_EVENT_EXEC)
			return event.event_data.exec.process_tgid;
		if (error < 0)
			return error == -EAGAIN ? 0 : error;
	}
}
