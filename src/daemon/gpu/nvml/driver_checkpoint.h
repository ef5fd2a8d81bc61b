/*
 * The driver's checkpoint calls (CUDA 12.8, driver 570), which take another process off its cards
 * and bring it back. They need libcuda, which starts threads and may hang. So the daemon never
 * calls them itself: a separate process does (daemon/memory/checkpoint/checkpoint_helper.h), and
 * killing that process ends a hanging call.
 *
 *     RUNNING  --lock-->  LOCKED  --checkpoint-->  CHECKPOINTED
 *              <-unlock--         <---restore----
 *
 * Locked: the process's CUDA calls block and its submitted work is done. Checkpointed: its device
 * memory is in its own host memory, and nothing of it is on a card, not even its contexts. The
 * driver (580) does not support managed memory and memory shared by IPC handles. Single-threaded.
 */
#pragma once

#include "base/error.h"

enum checkpoint_state {
	CHECKPOINT_GONE = -1, /* no such process, or it has not started CUDA */
	CHECKPOINT_RUNNING = 0,
	CHECKPOINT_LOCKED = 1,
	CHECKPOINT_SAVED = 2,
	CHECKPOINT_FAILED = 3, /* permanently, according to the driver */
};

enum checkpoint_step {
	CHECKPOINT_NOTHING, /* there is nothing left to do */
	CHECKPOINT_LOCK,
	CHECKPOINT_SAVE,
	CHECKPOINT_RESTORE,
	CHECKPOINT_UNLOCK,
};

struct checkpoint_driver;

/*
 * Loads the library and starts CUDA in this process, because a restore needs that. Makes no context. Returns -EOPNOTSUPP if the
 * driver is too old for these calls.
 */
int checkpoint_driver_open(const char *library, struct checkpoint_driver **ret, struct error *err);

/* Returns the driver's state of a process. */
enum checkpoint_state checkpoint_driver_state(struct checkpoint_driver *driver, int pid);

/*
 * Performs one step with one process. lock_ms is the longest time that a lock waits for the
 * process's work. Returns -ENOMEM if the card has no room, -ETIMEDOUT if the work does not end,
 * -EOPNOTSUPP if the process's memory cannot be moved, -EPERM or -EIO.
 */
int checkpoint_driver_do(struct checkpoint_driver *driver, enum checkpoint_step step, int pid,
			 unsigned lock_ms, struct error *err);
