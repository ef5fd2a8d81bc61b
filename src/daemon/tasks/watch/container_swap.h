/*
 * Takes containers without the library off their GPUs by request, with the driver's checkpoint call
 * (daemon/memory/checkpoint/checkpoint.h). They are not frozen: their CUDA calls block in the
 * driver, but their work on the processor continues. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/tasks/freezer/gpu_tasks.h"
#include "daemon/util/json.h"

struct gpu_watch;

/*
 * Takes the container off its GPUs (`out`) or brings it back. With `poll`, reports the result of an
 * earlier request. *ret_moving: the move is in progress. Returns -ENOSPC if there is no room to
 * return to, -EBUSY if it is moving or frozen, -EOPNOTSUPP if it belongs to a tenant.
 */
int container_swap(struct gpu_watch *watch, struct gpu_container *container, bool out, bool poll,
		   bool *ret_moving, struct error *err);

/* Whether any part of the container is off its GPUs or moving. */
bool container_swap_is_away(const struct gpu_container *container);
/*
 * Returns "leaving", "swapped", "returning", or "stuck" if only a part of the container is off its
 * GPUs. NULL if it is on its GPUs.
 */
const char *container_swap_state(const struct gpu_container *container);
/* Makes member "swap" of the container's JSON; null if no swap was ever requested. */
json_t *container_swap_to_json(const struct gpu_container *container);

/*
 * Call after a census that began at begun_ns. Releases the memory reserved for containers that had
 * returned by then, because the census includes what they hold.
 */
void container_swap_read(struct gpu_watch *watch, uint64_t begun_ns);

/*
 * Free the state. Call container_swap_forget() when the container's last task has ended, and
 * container_swap_forget_all() when the daemon ends: containers that are off their GPUs then return.
 */
void container_swap_forget(struct gpu_watch *watch, struct gpu_container *container);
void container_swap_forget_all(struct gpu_watch *watch);
