/* The process's side of src/abi/shm/registration.h: one exchange, two mappings, no descriptor kept. */
#pragma once

#include <stdint.h>

#include "abi/shm/region.h"

struct registration {
	const struct region_control *control; /* read-only mapping */
	struct region_report *report;         /* shared mapping */
	uint32_t slot;
	void *arena;       /* shared mapping of control->arena_bytes; NULL: not swappable */
	char message[128]; /* why it failed */
};

/*
 * Asks the daemon behind `path` once. 0 and a filled `ret`, or -errno: -ENOENT and -ECONNREFUSED
 * mean that no daemon listens now, -ECONNRESET and -EPIPE that it went away meanwhile, -EAGAIN that
 * it said nothing for patience_ns. A refusal has a message. Unmap with registration_unmap().
 * Signals are held back meanwhile. Leaves errno changed.
 */
int registration_ask(const char *path, uint64_t previous_epoch, uint64_t patience_ns,
		     struct registration *ret);

void registration_unmap(const struct region_control *control, struct region_report *report);
