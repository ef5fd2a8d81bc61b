/*
 * The driver's calls that take another process off its cards and bring it back (CUDA 12.8, driver 570), as
 * one small table. They load libcuda, so a process of its own makes them (daemon/memory/checkpoint/checkpoint_helper.h), never
 * the daemon: libcuda brings threads of its own, and a call that hangs is ended with its process.
 *
 *     RUNNING  --lock-->  LOCKED  --checkpoint-->  CHECKPOINTED
 *              <-unlock--         <---restore----
 *
 * Locked: its CUDA calls wait and the work that it had submitted is done. Checkpointed: all its device
 * memory is in its own host memory, nothing of it is on a card, contexts neither. Not supported by the driver
 * (580): managed memory and memory shared by IPC handles. One thread.
 */
#pragma once

#include "base/error.h"

enum checkpoint_state {
	CHECKPOINT_GONE = -1, /* no such process, or CUDA has not begun in it */
	CHECKPOINT_RUNNING = 0,
	CHECKPOINT_LOCKED = 1,
	CHECKPOINT_SAVED = 2,
	CHECKPOINT_FAILED = 3, /* for good, says the driver */
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
 * Loads the library and starts CUDA in this process, without a context: a restore needs that. -EOPNOTSUPP:
 * the driver is older than these calls.
 */
int checkpoint_driver_open(const char *library, struct checkpoint_driver **ret, struct error *err);

enum checkpoint_state checkpoint_driver_state(struct checkpoint_driver *driver, int pid);

/*
 * One step with one process. lock_ms: so long at most a lock waits for its work. -ENOMEM: no room on the
 * card; -ETIMEDOUT: its work does not end; -EOPNOTSUPP: what it holds can't be moved; -EPERM; -EIO.
 */
int checkpoint_driver_do(struct checkpoint_driver *driver, enum checkpoint_step step, int pid,
			 unsigned lock_ms, struct error *err);
