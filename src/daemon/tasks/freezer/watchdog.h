/*
 * The watchdog: a small child process that knows what is frozen, and thaws it when this process ends in
 * whatever way. It learns of the end by the end of its socket. It has a session of its own and
 * ignores the signals that end daemons, so that it is killed only by whoever means it.
 *
 *     daemon: watchdog_add(cgroup)     before it freezes
 *             watchdog_remove(cgroup)  after it has thawed
 *     child:  at the end of the socket writes to the file of each that is left
 *
 * Whoever kills both at once (a cgroup of a service, with SIGKILL) finds the list in the state file
 * (frozen_list.h) when the daemon starts again.
 *
 * Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/util/cgroups.h"

#define WATCHDOG_MAX 256 /* cgroups frozen at a time */

struct watchdog;

/* Starts the child. `name` of the process as `ps` shows it comes from the daemon's. */
int watchdog_start(struct watchdog **ret, struct error *err);
/* Lets the child end: it thaws what is left. Waits for it. NULL is fine; returns NULL. */
struct watchdog *watchdog_stop(struct watchdog *watchdog);

/* Readable when the child has died: nothing may stay frozen then. The watchdog's own. */
int watchdog_pidfd(const struct watchdog *watchdog);

/*
 * Tells it of one more, and waits until it knows. -ENOSPC: it knows WATCHDOG_MAX; -EPIPE: it
 * is gone.
 */
int watchdog_add(struct watchdog *watchdog, const struct cgroup *cgroup);
void watchdog_remove(struct watchdog *watchdog, const struct cgroup *cgroup);
