/*
 * What processes of a tenant give each other by descriptor (abi/shm/sharing.h): kept by key for as long as the process
 * lives that gave it. Only descriptors whose end can't hold the daemon up are kept: NVIDIA's device files, pipes and
 * memory files. Main thread only.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SHARING_MOST 1024 /* of a tenant */

struct sharing;

/* NULL: no memory. Of one tenant. */
struct sharing *sharing_new(void);
/* NULL is fine; returns NULL. */
struct sharing *sharing_free(struct sharing *s);

/*
 * Takes *fd over and leaves -1. `pid` is who gives: -EEXIST when another gives by that key; -EBADF, -EINVAL for what is
 * not kept; -ENOSPC beyond SHARING_MOST.
 */
int sharing_give(struct sharing *s, int pid, uint64_t key, uint64_t bytes, int *fd,
		 struct error *err);

/* A descriptor that stays ours, and what was said of it; -ENOENT. */
int sharing_find(const struct sharing *s, uint64_t key, uint64_t *ret_bytes);

/* What this process gave by the key, or everything (0). */
void sharing_drop(struct sharing *s, int pid, uint64_t key);
