/* A trace ring (struct trace_ring) for tests: made as the daemon does it, and mapped as by the traced process. */
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/shm/trace_ring.h"

/* Returns the mapping of an empty ring, or NULL. *ret_fd is its file. ring_drop() frees both. */
static inline struct trace_ring *ring_make(int *ret_fd)
{
	int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct trace_ring *ring;

	if (fd < 0 || ftruncate(fd, sizeof(*ring)) < 0)
		return NULL;
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return NULL;
	ring->magic = TRACE_MAGIC;
	ring->version = TRACE_VERSION;
	ring->size_bytes = sizeof(*ring);
	*ret_fd = fd;
	return ring;
}

static inline void ring_drop(struct trace_ring *ring, int fd)
{
	munmap(ring, sizeof(*ring));
	close(fd);
}
