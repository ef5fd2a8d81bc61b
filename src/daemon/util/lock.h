/*
 * One daemon per run directory, one arbiter per card: both by flock, which ends with its holder.
 *
 * A card's lock is a file named after it, in each of LOCK_DIRS directories that the daemon can use.
 *
 * Anyone who can open a file can hold a flock on it for good. So root's daemon takes its lock in a directory
 * where root alone can open files: that one decides whether it starts, and its file says who holds it. The
 * other directories are shared by all users (mode 1777): two users' daemons meet there, and meet root's, which
 * takes those locks too where it can get them.
 */
#pragma once

#include "base/error.h"

#define LOCK_DIRS 3
#define LOCK_DIR_OF_ROOT 0 /* the first */

/*
 * Locks <run_dir>/allotd.lock and writes the pid into it. A daemon that just ends is waited for, two
 * seconds at most. The descriptor holds the lock; -EBUSY names the pid of who has it.
 */
int lock_run_dir(const char *run_dir, struct error *err);

/*
 * Locks a card. `key` names it: letters, digits, '-'. `run_dir` goes into the file. fds: -1 where a
 * directory can't be used. 0, or 1 when root's daemon has the card but not a shared lock of it: err says why,
 * perhaps because another user's daemon shares the card too. -EBUSY when another daemon has it.
 */
int lock_card(const char *key, const char *run_dir, int ret_fds[LOCK_DIRS], struct error *err);
void lock_release(int fds[LOCK_DIRS]);

/* Tests: other directories than the machine's. */
void lock_set_dirs(const char *const dirs[LOCK_DIRS]);
