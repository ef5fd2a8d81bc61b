/*
 * One daemon per run directory, one arbiter per card: both by flock, which ends with its holder.
 *
 * A card's lock is a file named after it in directories that all daemons of the machine share
 * (mode 1777): LOCK_DIRS. A daemon takes it in each of them that it can use, so that any two meet in
 * at least one. The file says who holds it, for messages; only the lock itself counts.
 */
#ifndef ALLOT_NODE_LOCK_H
#define ALLOT_NODE_LOCK_H

#include "base/error.h"

#define LOCK_DIRS 2

/*
 * Locks <run_dir>/allotd.lock and writes the pid into it. A daemon that just ends is waited for, two
 * seconds at most. The descriptor holds the lock; -EBUSY names the pid of who has it.
 */
int lock_run_dir(const char *run_dir, struct error *err);

/*
 * Locks a card. `key` names it: letters, digits, '-'. `run_dir` goes into the file. fds: -1 where a
 * directory can't be used. -EBUSY when another daemon has it.
 */
int lock_card(const char *key, const char *run_dir, int ret_fds[LOCK_DIRS], struct error *err);
void lock_release(int fds[LOCK_DIRS]);

/* Tests: other directories than the machine's. */
void lock_set_dirs(const char *const dirs[LOCK_DIRS]);

#endif
