/*
 * Moves containers without allot's library off their GPUs and back, by request, with the driver's checkpoint calls
 * (daemon/memory/checkpoint/checkpoint.h). While a container is off, its CUDA calls block, but its work on the processor goes
 * on. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/tasks/freezer/gpu_tasks.h"
#include "daemon/util/json.h"

struct gpu_watch;

/*
 * Moves the container off its GPUs (`out`) or back; with `poll`, only returns the result of an earlier request. *ret_moving:
 * the move is in progress. Returns -ENOSPC if the GPUs have no room for the container, -EBUSY if the container is moving or
 * frozen, -EOPNOTSUPP if it belongs to a tenant. A poll returns -ECANCELED if the earlier request is no longer in force.
 */
int container_swap(struct gpu_watch *watch, struct gpu_container *container, bool out, bool poll,
		   bool *ret_moving, struct error *err);

/* Returns true if any part of the container is off its GPUs or moving. */
bool container_swap_is_away(const struct gpu_container *container);
/* Returns "leaving", "swapped", "returning", or "stuck" if only a part is off the GPUs; NULL if it is on its GPUs. */
const char *container_swap_state(const struct gpu_container *container);
/* Makes the member "swap" of the container's JSON; null if no move off the GPUs was ever requested. */
json_t *container_swap_to_json(const struct gpu_container *container);

/*
 * Call after a census that began at begun_ns. Its figures include containers that had returned by then, so the memory that was
 * reserved for their return is released.
 */
void container_swap_read(struct gpu_watch *watch, uint64_t begun_ns);

/* Call when the container's last task or the daemon ends. Free container->swap; containers off their GPUs return. */
void container_swap_forget(struct gpu_watch *watch, struct gpu_container *container);
void container_swap_forget_all(struct gpu_watch *watch);
