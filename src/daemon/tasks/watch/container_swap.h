/*
 * Containers without the library whose processes are taken off their GPUs by the driver's checkpoint call, by
 * hand (daemon/memory/checkpoint/checkpoint.h). They are not frozen: their calls of CUDA wait in the driver, and what they
 * do on the processor goes on. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/tasks/freezer/gpu_tasks.h"
#include "daemon/util/json.h"

struct gpu_watch;

/*
 * Takes it off (out) or brings it back, or with `poll` says what came of that. *ret_moving: it is under
 * way. -ENOSPC: no room to come back to; -EBUSY: it moves, or stands still; -EOPNOTSUPP: it is a tenant's.
 */
int container_swap(struct gpu_watch *watch, struct gpu_container *container, bool out, bool poll,
		   bool *ret_moving, struct error *err);

/* It is out, or on its way. */
bool container_swap_is_away(const struct gpu_container *container);
/* Its state while it is: "leaving", "swapped", "returning" or, of one of which a part is out, "stuck"; NULL: it is not. */
const char *container_swap_state(const struct gpu_container *container);
/* "swap" of the container's JSON; null when there is nothing to say. */
json_t *container_swap_to_json(const struct gpu_container *container);

/* A reading that began at begun_ns: what came back before it is in there, and no longer kept free apart. */
void container_swap_read(struct gpu_watch *watch, uint64_t begun_ns);

/* Its last task has ended; all of them, at the daemon's end: what is out comes back then. */
void container_swap_forget(struct gpu_watch *watch, struct gpu_container *container);
void container_swap_forget_all(struct gpu_watch *watch);
