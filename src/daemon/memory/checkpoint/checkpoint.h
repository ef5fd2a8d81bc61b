/*
 * A helper is a process that moves other processes off their GPUs with the driver's checkpoint calls (checkpoint_helper.h):
 * those of one tenant, or of one container without allot's library. This is the daemon's side. An order changes the place of
 * the processes:
 *
 *     IN --leave--> LEAVING --> OUT --come back--> RETURNING --> IN
 *            ^         |         ^                    |
 *            +---------+         +--------------------+     a failed order is undone,
 *                      +------> STUCK <---------------+     or ends here; a new order tries again
 *
 * A helper that does not answer in time (setting checkpoint_timeout, plus a second per 256 MiB) is killed, and another helper
 * brings the processes back to their GPUs. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/memory/checkpoint/helper_protocol.h"
#include "daemon/memory/checkpoint/checkpoint_steps.h"

enum checkpoint_place { PLACE_IN, PLACE_LEAVING, PLACE_OUT, PLACE_RETURNING, PLACE_STUCK };

struct node;
struct checkpoint;

/* The processes' place has changed. Never called in checkpoint_order(). The callee may free the checkpoint. */
typedef void (*checkpoint_changed)(void *data, struct checkpoint *checkpoint);

/* Does not start the helper. `key`, a tenant's or container's id, names the helper's file. */
int checkpoint_new(struct node *node, const char *key, checkpoint_changed changed, void *data,
		   struct checkpoint **ret, struct error *err);
/* The helper, once disconnected, brings its processes back and ends. NULL is allowed; returns NULL. */
struct checkpoint *checkpoint_free(struct checkpoint *checkpoint);

/*
 * Orders the processes off their GPUs or back. Starts a helper if none runs. The caller fills in goal, processes and bytes;
 * lock_ms and room_ms are set here. Returns -EBUSY while another order runs, or another -errno if no helper can be started.
 */
int checkpoint_order(struct checkpoint *checkpoint, struct helper_order *order, struct error *err);

/* PLACE_IN if `checkpoint` is NULL. */
enum checkpoint_place checkpoint_place(const struct checkpoint *checkpoint);
/* "in", "leaving", "out", "returning" or "stuck". */
const char *checkpoint_place_name(enum checkpoint_place place);
/* Why the last order failed, or "". */
const char *checkpoint_error(const struct checkpoint *checkpoint);
/* How many bytes the last order had to move, over all GPUs, and how long the move took. */
uint64_t checkpoint_bytes(const struct checkpoint *checkpoint);
uint64_t checkpoint_moved_ns(const struct checkpoint *checkpoint);
uint64_t checkpoint_failed(const struct checkpoint *checkpoint);

/*
 * Call when the daemon has started. Brings back the processes that helpers of the previous daemon left off the GPU, except for
 * keys that `keeps` accepts: the caller will give orders for those.
 */
void checkpoint_recover(struct node *node, bool (*keeps)(struct node *node, const char *key));
