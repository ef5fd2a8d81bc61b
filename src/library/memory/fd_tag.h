/* Sets and reads the tags of descriptors of exported memory (abi/shm/fd_tag_format.h). Thread safe. */
#pragma once

#include "abi/shm/fd_tag_format.h"

/* Returns a random key for memory of device index `device`, or REGION_HOST; 0 if the device does not matter. */
uint64_t fd_tag_new_key(int device);

/* Tags the file. Returns false if that fails; then other processes do not recognize the memory. */
bool fd_tag_set(int fd, const struct fd_tag *tag);

/* Returns false if the file has no tag, or /proc is missing. */
bool fd_tag_get(int fd, struct fd_tag *ret_tag);

/*
 * Calls visit() for each tag in /proc/locks. Other programs' locks may look like tags. A file that is closed meanwhile may hide
 * another tag. Returns false if /proc/locks can't be read, or is longer than FD_TAG_LOCKS_MOST.
 */
bool fd_tag_visit_all(void (*visit)(const struct fd_tag *tag, void *data), void *data);
