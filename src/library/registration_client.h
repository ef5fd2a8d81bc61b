/*
 * The process's side of src/abi/shm/registration.h: sends one request, gets one reply, and maps the two files that
 * come with it, and the swap arena if there is one. No file descriptor stays open.
 */
#pragma once

#include <stdint.h>

#include "abi/shm/region.h"

struct registration {
	const struct region_control *control; /* read-only mapping */
	struct region_report *report;         /* shared mapping */
	uint32_t slot;
	void *arena;       /* shared mapping of control->arena_bytes; NULL if not swappable */
	char message[128]; /* the reason if it failed */
};

/*
 * Sends one registration request to the daemon at `path`. Returns 0 and fills `ret`, or returns -errno: -ENOENT or
 * -ECONNREFUSED if no daemon listens now, -ECONNRESET or -EPIPE if the daemon went away meanwhile, -EAGAIN if the daemon sent
 * no answer for patience_ns. If the daemon refuses, `ret->message` says why. Unmap with registration_unmap(). Signals are
 * blocked during the exchange. Changes errno.
 */
int registration_ask(const char *path, uint64_t previous_epoch, uint64_t patience_ns,
		     struct registration *ret);

void registration_unmap(const struct region_control *control, struct region_report *report);
