/*
 * The process's side of src/abi/shm/registration.h: sends a request, and maps the files that come with the reply. No file
 * descriptor stays open.
 */
#pragma once

#include <stdint.h>

#include "abi/shm/region.h"

struct registration {
	const struct region_control *control; /* read-only mapping */
	struct region_report *report;         /* shared mapping */
	uint32_t slot;
	void *arena;       /* control->arena_bytes of shared memory; NULL if not swappable */
	char message[128]; /* why registration failed */
};

/*
 * Sends a request to the daemon at `path`. Returns 0 and fills `ret`, or returns -errno: -ENOENT or -ECONNREFUSED if no daemon
 * listens, -ECONNRESET or -EPIPE if the daemon went away meanwhile, -EAGAIN if it did not answer for patience_ns. If the daemon
 * refuses, ret->message says why. Unmap with registration_unmap(). Blocks signals meanwhile. Keeps errno.
 */
int registration_ask(const char *path, uint64_t previous_epoch, uint64_t patience_ns,
		     struct registration *ret);

void registration_unmap(const struct region_control *control, struct region_report *report);
