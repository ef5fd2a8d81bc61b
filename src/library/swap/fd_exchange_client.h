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

/*
 * Makes the daemon drop the descriptor with this key, which keeps the memory alive. Does nothing if none was given. If the daemon
 * does not answer, sharing_refresh() tries again.
 */
void sharing_drop(uint64_t key);
/* Helper thread, at each poll: drops again what could not be dropped, once a second. */
void sharing_refresh(uint64_t now_ns);

/* Call in a forked child: forgets the state of the parent. */
void sharing_reset(void);
