/* The process's side of src/abi/shm/registration.h. No file descriptor stays open. */
#pragma once

#include <stdint.h>

#include "abi/shm/region.h"

struct registration {
	const struct region_control *control; /* read-only */
	struct region_report *report;
	uint32_t slot;
	void *arena;       /* control->arena_bytes of shared memory; NULL if not swappable */
	char message[128]; /* why registration failed */
};

/*
 * Sends a request to the daemon at `path`, and maps the files of the reply; unmap with registration_unmap(). Returns 0 or
 * -errno: -ENOENT or -ECONNREFUSED if no daemon listens, -ECONNRESET or -EPIPE if the daemon went away meanwhile, -EAGAIN if it
 * did not answer for patience_ns. If the daemon refuses, ret->message says why. Blocks signals meanwhile. Keeps errno.
 */
int registration_ask(const char *path, uint64_t previous_epoch, uint64_t patience_ns,
		     struct registration *ret);

void registration_unmap(const struct region_control *control, struct region_report *report);
