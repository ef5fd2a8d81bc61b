/* The process's side of src/abi/shm/sharing.h. Thread safe; off the hot path. */
#pragma once

#include <stdint.h>

/* The descriptor stays the caller's. 0 or -errno, also when no daemon answers. */
int sharing_give(uint64_t key, uint64_t bytes, int fd);

/* *ret_fd is then the caller's. -ENOENT: no process of the tenant gives it. */
int sharing_take(uint64_t key, uint64_t *ret_bytes, int *ret_fd);

/* Is given no longer; nothing when it was not. */
void sharing_drop(uint64_t key);
