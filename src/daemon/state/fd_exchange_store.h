/*
 * Descriptors that a tenant's processes give each other (abi/shm/fd_exchange.h), kept under a key while the giving process
 * lives. Kept are only kinds whose close() cannot block: NVIDIA's device files, pipes, memory files. Main thread only.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SHARING_MOST 1024 /* most descriptors of a tenant */

struct sharing;

/* Makes the store of one tenant. Returns NULL if out of memory. */
struct sharing *sharing_new(void);
/* Closes all descriptors and frees the store. NULL is allowed; returns NULL. */
struct sharing *sharing_free(struct sharing *s);

/*
 * Takes *fd, which becomes -1, under `key`. `pid` gives it and reports the size `bytes`. Returns -EEXIST if another process
 * gave that key, -EBADF for no descriptor or a wrong kind, -EINVAL if key or bytes is 0, -ENOSPC beyond SHARING_MOST.
 */
int sharing_give(struct sharing *s, int pid, uint64_t key, uint64_t bytes, int *fd,
		 struct error *err);

/* Returns the descriptor, which the store still owns, and the reported size; -ENOENT if there is none. */
int sharing_find(const struct sharing *s, uint64_t key, uint64_t *ret_bytes);

/* Closes what process `pid` gave under the key; all that it gave if `key` is 0. */
void sharing_drop(struct sharing *s, int pid, uint64_t key);
