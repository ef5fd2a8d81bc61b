/*
 * The driver's checkpoint calls (CUDA 12.8, driver 570), which take another process off its cards and bring it back. They need
 * libcuda, which starts threads and may hang, so a separate process calls them (daemon/memory/checkpoint/checkpoint_helper.h),
 * and can be killed.
 *
 *     RUNNING  --lock-->  LOCKED  --checkpoint-->  CHECKPOINTED
 *              <-unlock--         <---restore----
 *
 * Locked: the process's CUDA calls block and its submitted work is done. Checkpointed: its device memory is in its own host
 * memory, and nothing of it is on a card, not even its contexts. The driver (580) supports neither managed memory nor memory
 * shared by IPC handles. Single-threaded.
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
	CHECKPOINT_NOTHING,
	CHECKPOINT_LOCK,
	CHECKPOINT_SAVE,
	CHECKPOINT_RESTORE,
	CHECKPOINT_UNLOCK,
};

struct checkpoint_driver;

/* Loads libcuda and calls cuInit(), which a restore needs, but makes no context. -EOPNOTSUPP if the driver is too old. */
int checkpoint_driver_open(const char *library, struct checkpoint_driver **ret, struct error *err);

enum checkpoint_state checkpoint_driver_state(struct checkpoint_driver *driver, int pid);

/*
 * Does one step. CHECKPOINT_LOCK waits at most lock_ms for the process's work. Returns -ENOMEM if the card has no room,
 * -ETIMEDOUT if the work does not end, -EOPNOTSUPP if the memory cannot be moved, -EPERM or -EIO.
 */
int checkpoint_driver_do(struct checkpoint_driver *driver, enum checkpoint_step step, int pid,
			 unsigned lock_ms, struct error *err);
