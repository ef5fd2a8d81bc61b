#pragma once

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Writes all bytes, also after a short write or a signal. On -errno, some bytes may be written already. Thread safe. */
static inline int write_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = write(fd, at, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}
