/* The process's side of src/abi/shm/sharing.h. Thread safe. */
#pragma once

#include <stdint.h>

/* Gives a copy of `fd` to the daemon; the caller keeps `fd`. Returns 0 or -errno, also if no daemon answers. */
int sharing_give(uint64_t key, uint64_t bytes, int fd);

/*
 * Gets the descriptor with this key from the daemon; the caller owns *ret_fd. Returns -ENOENT if no process of the tenant has
 * given it.
 */
int sharing_take(uint64_t key, uint64_t *ret_bytes, int *ret_fd);

/* Makes the daemon close the descriptor with this key, if there is one. */
void sharing_drop(uint64_t key);
