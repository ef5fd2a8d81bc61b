/* The process's side of src/abi/shm/fd_exchange.h. Thread safe; not for the hot path. */
#pragma once

#include <stdint.h>

/* Gives a copy of `fd` to the daemon; the caller keeps `fd`. Returns 0 or -errno, also if no daemon answers. */
int sharing_give(uint64_t key, uint64_t bytes, int fd);

/*
 * Gets the descriptor with this key from the daemon; *ret_fd then belongs to the caller. Returns -ENOENT if no process of the
 * tenant has given it.
 */
int sharing_take(uint64_t key, uint64_t *ret_bytes, int *ret_fd);

/* Makes the daemon drop the descriptor with this key. Does nothing if none was given. */
void sharing_drop(uint64_t key);
