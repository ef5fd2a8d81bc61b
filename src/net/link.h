/*
 * A connection to another program's unix socket, with a deadline: each operation ends at end_ns at the latest, or when stop_fd
 * becomes readable. A link belongs to one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct net_link {
	int fd;
	int stop_fd;     /* owned by the caller; -1 if none */
	uint64_t end_ns; /* on the clock of clock_now_ns() */
};

/* -ETIMEDOUT if the server's queue of connections stayed full; -ECANCELED if stop_fd became readable; or another -errno. */
int net_link_open(struct net_link *link, const char *path, int stop_fd, uint64_t end_ns);
void net_link_close(struct net_link *link);

/*
 * Reads at least one and up to `size` bytes, and returns their number; 0 if the other side has closed. Returns -ETIMEDOUT at
 * the link's end_ns, -ECANCELED if its stop_fd became readable, or another -errno.
 */
ssize_t net_link_read(const struct net_link *link, void *data, size_t size);
/* Writes all bytes; errors as for net_link_read(). */
int net_link_write(const struct net_link *link, const void *data, size_t size);
