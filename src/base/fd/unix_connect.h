#pragma once

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

/*
 * Connects to the unix socket at `path`. `type` is SOCK_STREAM or SOCK_SEQPACKET, perhaps with SOCK_NONBLOCK. Returns a
 * close-on-exec descriptor that the caller closes, or -errno; -EAGAIN if the server's backlog is full and `type` has
 * SOCK_NONBLOCK. Thread safe.
 */
static inline int unix_connect(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	cleanup_fd int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		if (errno != EINTR)
			return -errno;
	return steal_fd(&fd);
}
