/*
 * One daemon per run directory and one arbiter per card. Both are ensured by flock, which ends with
 * its holder.
 *
 * A card's lock is a file named after the card, in each of LOCK_DIRS directories that the daemon
 * can use.
 *
 * Any process that can open a file can hold a flock on it for ever. So root's daemon takes its lock
 * in a directory where only root can open files. That lock decides whether the daemon starts, and
 * its file names the holder. All users share the other directories (mode 1777). There, daemons of
 * different users exclude each other. Root's daemon takes these locks too, where it can get them.
 */
#pragma once

#include "base/error.h"

#define LOCK_DIRS 3
#define LOCK_DIR_OF_ROOT 0 /* the first directory */

/*
 * Locks <run_dir>/allotd.lock and writes the pid into it. Waits at most two seconds for a daemon
 * that is ending. Returns the descriptor that holds the lock, or -EBUSY with the holder's pid.
 */
int lock_run_dir(const char *run_dir, struct error *err);

/*
 * Locks a card. `key` names the card: letters, digits, '-'. `run_dir` is written into the file. A
 * descriptor is -1 if its directory cannot be used. Returns 0; 1 if root's daemon has the card but
 * not all shared locks (err says why; another user's daemon may use the card too); -EBUSY if
 * another daemon has the card.
 */
int lock_card(const char *key, const char *run_dir, int ret_fds[LOCK_DIRS], struct error *err);
void lock_release(int fds[LOCK_DIRS]);

/* For tests: replaces the machine's directories. */
void lock_set_dirs(const char *const dirs[LOCK_DIRS]);
