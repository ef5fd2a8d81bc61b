/*
 * A connection to a unix socket of another program, with an end: whatever it waits for is over at end_ns, or
 * when stop_fd becomes readable. Nothing here blocks longer; each end belongs to one thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct net_link {
	int fd;
	int stop_fd;     /* the caller's; -1: none */
	uint64_t end_ns; /* by base/clock.h */
};

/* A stream socket at that path; fd is owned by the caller, net_link_close(). -ETIMEDOUT: its queue stayed full; -ECANCELED; -errno. */
int net_link_open(struct net_link *link, const char *path, int stop_fd, uint64_t end_ns);
void net_link_close(struct net_link *link);

/* Up to `size` bytes, some at least; 0: the other side has ended. -ETIMEDOUT, -ECANCELED, -errno. */
ssize_t net_link_read(const struct net_link *link, void *data, size_t size);
/* All of them. */
int net_link_write(const struct net_link *link, const void *data, size_t size);
