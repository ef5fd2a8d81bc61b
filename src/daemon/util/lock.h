/*
 * Ensures that there is one daemon per run directory and one arbiter per card, by flock: the kernel
 * releases such a lock when its holder ends.
 *
 * A card's lock is a file named after the card, in each of LOCK_DIRS directories that the daemon
 * can use.
 *
 * Any process that can open a file can hold a flock on it for ever. So root's daemon takes its lock
 * in a directory where only root can open files. That lock decides whether the daemon starts, and
 * its file names the holder. All users share the other directories (mode 1777). The locks there
 * keep daemons of different users from using the same card. Root's daemon takes these locks too,
 * where it can get them.
 */
#pragma once

#include "base/error.h"

#define LOCK_DIRS 3
#define LOCK_DIR_OF_ROOT 0 /* index of root's own directory */

/*
 * Locks <run_dir>/allotd.lock and writes the pid into it. Waits at most two seconds for a daemon
 * that is ending. Returns the descriptor that holds the lock, or -EBUSY with the holder's pid.
 */
int lock_run_dir(const char *run_dir, struct error *err);

/*
 * Locks a card. `key` names the card: letters, digits, '-'. `run_dir` is written into the lock
 * file, for error messages. ret_fds[i] holds the lock in directory i; it is -1 if the directory
 * cannot be used or that lock was not taken. Returns 0 if the card is locked; -EBUSY if another
 * daemon has it. Returns 1 if root's daemon has its own lock but not all shared locks: another
 * user's daemon may then use the card too (err says why).
 */
int lock_card(const char *key, const char *run_dir, int ret_fds[LOCK_DIRS], struct error *err);
void lock_release(int fds[LOCK_DIRS]);

/* For tests: replaces the machine's directories. */
void lock_set_dirs(const char *const dirs[LOCK_DIRS]);
