/* A ring as the daemon makes one, for tests: mapped by the test as the process has it. */
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/shm/trace_ring.h"

/* NULL, or the mapping; *ret_fd is the file. */
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
