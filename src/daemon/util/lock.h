/*
 * Locks, by flock, a daemon's run directory (its socket and files) and its cards (GPUs), so that each has only one daemon. The
 * kernel releases a lock when its holder ends.
 *
 * A card's lock is a file named after the card, in each of LOCK_DIRS directories that can be used. One directory is root's, so
 * that no other user can hold its locks. Root's daemon needs the lock there, unless that directory cannot be made. All users
 * share the other directories (mode 1777), which keep daemons of different users off the same card. Root's daemon takes the
 * shared locks too, if it can.
 */
#pragma once

#include "base/error.h"

#define LOCK_DIRS 3
#define LOCK_DIR_OF_ROOT 0 /* index of root's own directory */

/*
 * Locks <run_dir>/allotd.lock. Waits at most two seconds for a daemon that is ending. Returns the descriptor that holds the
 * lock, or -EBUSY; err then names the holder's pid.
 */
int lock_run_dir(const char *run_dir, struct error *err);

/*
 * Locks the card named `key` (letters, digits, '-'). The lock files record `run_dir` for error messages. ret_fds[i] holds the
 * lock in directory i, or is -1. Returns 0 if the card is locked, -EBUSY if another daemon has it, or another -errno. Root's
 * daemon gets 1 if it has the card but lacks a shared directory's lock, which err names: another user may use the card.
 */
int lock_card(const char *key, const char *run_dir, int ret_fds[LOCK_DIRS], struct error *err);
void lock_release(int fds[LOCK_DIRS]);

/* For tests: replaces the machine's directories. */
void lock_set_dirs(const char *const dirs[LOCK_DIRS]);
