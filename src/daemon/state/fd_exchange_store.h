/*
 * Keeps descriptors that a tenant's processes give each other (abi/shm/fd_exchange.h), each under a key until the process that
 * stored it ends. Accepts only kinds whose close() cannot block: NVIDIA's device files, pipes, memory files. Main thread only.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define FD_STORE_MOST 1024 /* most descriptors of a tenant */

struct fd_store;

/* NULL if out of memory */
struct fd_store *fd_store_new(void);
/* Closes all descriptors. NULL is allowed; returns NULL. */
struct fd_store *fd_store_free(struct fd_store *s);

/*
 * Stores *fd under `key`, and sets *fd to -1. `pid` is the process that stores it, `bytes` the size that this process reports.
 * Returns -EEXIST if another process uses that key; -EBADF if *fd is no descriptor or of a kind that is not accepted; -EINVAL
 * if key or bytes is 0; -ENOSPC if the store has FD_STORE_MOST descriptors.
 */
int fd_store_put(struct fd_store *s, int pid, uint64_t key, uint64_t bytes, int *fd,
		 struct error *err);

/* Returns the descriptor, which the store still owns, and the reported size; -ENOENT if there is none. */
int fd_store_get(const struct fd_store *s, uint64_t key, uint64_t *ret_bytes);

/* Closes the descriptor that process `pid` stored under `key`; if `key` is 0, all that this process stored. */
void fd_store_delete(struct fd_store *s, int pid, uint64_t key);
