/*
 * File descriptors that processes of a tenant give each other (abi/shm/fd_exchange.h). Each is kept
 * under a key while the process that gave it lives. Only descriptors that close without blocking
 * the daemon are kept: NVIDIA's device files, pipes and memory files. Main thread only.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SHARING_MOST 1024 /* descriptors per tenant */

struct sharing;

/* Makes the store of one tenant. Returns NULL if out of memory. */
struct sharing *sharing_new(void);
/* Closes all kept descriptors and frees the store. NULL is allowed; returns NULL. */
struct sharing *sharing_free(struct sharing *s);

/*
 * Keeps *fd under `key`, takes ownership of it and sets *fd to -1. `pid` is the giving process,
 * `bytes` the size that it reports. Returns -EEXIST if another process has given a descriptor under
 * that key, -EBADF if *fd is missing or of a kind that is not kept, -EINVAL if key or bytes is 0,
 * -ENOSPC beyond SHARING_MOST.
 */
int sharing_give(struct sharing *s, int pid, uint64_t key, uint64_t bytes, int *fd,
		 struct error *err);

/*
 * Returns the descriptor under `key`, which the store still owns, and in *ret_bytes the size that
 * the giving process reported; -ENOENT if there is none.
 */
int sharing_find(const struct sharing *s, uint64_t key, uint64_t *ret_bytes);

/*
 * Closes the descriptor that process `pid` gave under the key, or all that it gave if `key` is 0.
 */
void sharing_drop(struct sharing *s, int pid, uint64_t key);
