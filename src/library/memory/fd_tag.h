/*
 * A tag on an open file stays with the file wherever its descriptor is sent. By the tag, the processes of a tenant recognize
 * the memory behind a descriptor: all descriptors of the driver refer to the same device file. The tag is a read lock of the
 * open file description (fcntl(2)), which blocks nothing. Its range begins at a random offset, and its length is the memory's
 * number of pages. /proc shows the range to any process that has the descriptor. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FD_TAG_PAGE (2ULL << 20)

struct fd_tag {
	uint64_t key; /* never 0 */
	/* Pages of FD_TAG_PAGE bytes; 0 for a pool or a multicast object. */
	uint64_t pages;
};

/* A random key. */
uint64_t fd_tag_new_key(void);

/* If this returns false, other processes do not recognize the memory. */
bool fd_tag_set(int fd, const struct fd_tag *tag);

/* Returns false if the file has no tag, or /proc is missing. */
bool fd_tag_get(int fd, struct fd_tag *ret_tag);
