/*
 * The processes of one tenant, or of one container without the library, that can be taken off their cards by
 * the driver's checkpoint call: the daemon's side of a helper (checkpoint_helper.h).
 *
 *     IN --leave--> LEAVING --> OUT --come back--> RETURNING --> IN
 *            ^         |         ^                    |
 *            +---------+         +--------------------+     what could not be done leaves all as it was
 *                      +------> STUCK <---------------+     but for this; a new order tries again
 *
 * A helper that does not answer in time (config: checkpoint_timeout, and a second for each 256 MiB) is
 * killed, and another is asked to take back what was begun. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/memory/checkpoint/helper_protocol.h"
#include "daemon/memory/checkpoint/steps.h"

enum checkpoint_place { PLACE_IN, PLACE_LEAVING, PLACE_OUT, PLACE_RETURNING, PLACE_STUCK };

struct node;
struct checkpoint;

/* The place has changed; not called from within checkpoint_order(). It may free the checkpoint. */
typedef void (*checkpoint_changed)(void *data, struct checkpoint *checkpoint);

/* `key` names its helper's file: a tenant's id, or a container's. */
int checkpoint_new(struct node *node, const char *key, checkpoint_changed changed, void *data,
		   struct checkpoint **ret, struct error *err);
/*
 * Lets go of the helper, which brings back what is out and ends by itself. NULL is fine; returns NULL.
 */
struct checkpoint *checkpoint_free(struct checkpoint *checkpoint);

/*
 * The order's goal, processes and bytes are the caller's, its times are filled in here. -EBUSY while one is
 * being carried out; -errno when no helper can be started.
 */
int checkpoint_order(struct checkpoint *checkpoint, struct helper_order *order, struct error *err);

enum checkpoint_place checkpoint_place(const struct checkpoint *checkpoint); /* NULL: PLACE_IN */
/* "in", "leaving", "out", "returning", "stuck". */
const char *checkpoint_place_name(enum checkpoint_place place);
/* What the last order failed for; "" when it did not. */
const char *checkpoint_error(const struct checkpoint *checkpoint);
/* Of the last order: what was to move, of all cards; how long it took. */
uint64_t checkpoint_bytes(const struct checkpoint *checkpoint);
uint64_t checkpoint_moved_ns(const struct checkpoint *checkpoint);
uint64_t checkpoint_failed(const struct checkpoint *checkpoint); /* orders, ever */

/*
 * After a daemon's start: brings back what helpers before left, but for the keys of which `keeps` says that
 * an order of this daemon will follow.
 */
void checkpoint_recover(struct node *node, bool (*keeps)(struct node *node, const char *key));
