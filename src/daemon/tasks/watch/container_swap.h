/*
 * Takes containers without the library off their GPUs by request, by the driver's checkpoint calls
 * (daemon/memory/checkpoint/checkpoint.h). CUDA calls then block, but work on the processor goes on. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/tasks/freezer/gpu_tasks.h"
#include "daemon/util/json.h"

struct gpu_watch;

/*
 * Off the GPUs (`out`) or back; with `poll`, the result of an earlier request. *ret_moving: in progress. Returns -ENOSPC
 * without room to return, -EBUSY if moving or frozen, -EOPNOTSUPP if a tenant's.
 */
int container_swap(struct gpu_watch *watch, struct gpu_container *container, bool out, bool poll,
		   bool *ret_moving, struct error *err);

/* Returns true if any part of the container is off its GPUs or moving. */
bool container_swap_is_away(const struct gpu_container *container);
/* Returns "leaving", "swapped", "returning", or "stuck" if only a part is off the GPUs; NULL if it is on its GPUs. */
const char *container_swap_state(const struct gpu_container *container);
/* Makes "swap" of the container's JSON; null if never requested. */
json_t *container_swap_to_json(const struct gpu_container *container);

/* Call after a census from begun_ns, which includes containers that had returned: releases their reserved memory. */
void container_swap_read(struct gpu_watch *watch, uint64_t begun_ns);

/* Free the state when the container's last task has ended, or when the daemon ends: containers then return. */
void container_swap_forget(struct gpu_watch *watch, struct gpu_container *container);
void container_swap_forget_all(struct gpu_watch *watch);
