#include "net/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define FULL_PAUSE_NS (5 * NSEC_PER_MSEC)

/* connect() fails with EAGAIN while the server's backlog is full. */
static int connect_in_time(int fd, const struct sockaddr_un *address, int stop_fd, uint64_t end_ns)
{
	const struct timespec pause = clock_to_timespec(FULL_PAUSE_NS);
	for (;;) {
		struct pollfd stop = { .fd = stop_fd, .events = POLLIN };
		if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (clock_now_ns() >= end_ns)
			return -ETIMEDOUT;
		if (ppoll(&stop, 1, &pause, NULL) > 0)
			return -ECANCELED;
	}
}

int net_link_open(struct net_link *link, const char *path, int stop_fd, uint64_t end_ns)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int r = connect_in_time(fd, &address, stop_fd, end_ns);
	if (r < 0)
		return r;
	*link = (struct net_link){ .fd = steal_fd(&fd), .stop_fd = stop_fd, .end_ns = end_ns };
	return 0;
}

void net_link_close(struct net_link *link)
{
	close_fd(&link->fd);
}

static int wait_for(const struct net_link *link, short events)
{
	for (;;) {
		struct pollfd p[] = { { .fd = link->fd, .events = events },
				      { .fd = link->stop_fd, .events = POLLIN } };
		uint64_t now_ns = clock_now_ns();
		if (now_ns >= link->end_ns)
			return -ETIMEDOUT;
		struct timespec left = clock_to_timespec(link->end_ns - now_ns);
		int n = ppoll(p, 2, &left, NULL);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p[1].revents)
			return -ECANCELED;
		if (n > 0)
			return 0;
	}
}

ssize_t net_link_read(const struct net_link *link, void *data, size_t size)
{
	for (;;) {
		int r = wait_for(link, POLLIN);
		if (r < 0)
			return r;
		ssize_t n = recv(link->fd, data, size, 0);
		if (n >= 0)
			return n;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
}

int net_link_write(const struct net_link *link, const void *data, size_t size)
{
	const char *at = data;
	while (size) {
		int r = wait_for(link, POLLOUT);
		if (r < 0)
			return r;
		ssize_t n = send(link->fd, at, size, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}
