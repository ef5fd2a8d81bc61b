/*
 * A mark on an open file that stays with it wherever it is sent, so that every process of a tenant
 * knows the memory that the driver's descriptor stands for. The driver tells nothing of it: all of its
 * descriptors are the same device. The mark is a read lock of the open file description (fcntl(2)) on
 * a range of offsets that mean nothing to a device: it begins at a number drawn at random, and is as
 * long as the memory has pages. /proc shows it to whoever has the descriptor; it hinders nobody.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FD_TAG_PAGE (2ULL << 20)

struct fd_tag {
	uint64_t key;   /* never 0 */
	uint64_t pages; /* of FD_TAG_PAGE; 0: not device memory */
};

/* A key that no other has. */
uint64_t fd_tag_new_key(void);

/* False when it can't be marked: then others don't know the memory by it. Thread safe, as all here. */
bool fd_tag_set(int fd, const struct fd_tag *tag);

/* False when it has no mark, or /proc is not there to tell. */
bool fd_tag_get(int fd, struct fd_tag *ret_tag);
