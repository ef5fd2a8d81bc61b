/*
 * A mark on an open file that stays with the file wherever its descriptor is sent. By the mark, every process of a
 * tenant recognizes the memory behind a descriptor. The driver does not help: all its descriptors are the same
 * device. The mark is a read lock of the open file description (fcntl(2)) on a range of offsets that mean nothing
 * to a device. The range starts at a random number and is as long as the memory has pages. /proc shows it to any
 * process that has the descriptor. The lock blocks nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FD_TAG_PAGE (2ULL << 20)

struct fd_tag {
	uint64_t key;   /* never 0 */
	uint64_t pages; /* number of FD_TAG_PAGE; 0 if not device memory */
};

/* Returns a key that no other memory has. */
uint64_t fd_tag_new_key(void);

/*
 * Marks the file. Returns false if that is not possible; then other processes do not recognize the memory. Thread safe, as are
 * all functions here.
 */
bool fd_tag_set(int fd, const struct fd_tag *tag);

/* Reads the file's mark. Returns false if it has none, or if /proc is missing. */
bool fd_tag_get(int fd, struct fd_tag *ret_tag);
