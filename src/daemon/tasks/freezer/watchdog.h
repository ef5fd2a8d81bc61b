/*
 * A small child process that knows the frozen cgroups, and thaws them when the daemon ends in any
 * way. It notices the end by its socket. It has its own session and ignores the signals that end
 * daemons, so only a deliberate kill ends it.
 *
 *     daemon: watchdog_add(cgroup)     before it freezes
 *             watchdog_remove(cgroup)  after it has thawed
 *     child:  at the end of the socket, thaws each remaining cgroup
 *
 * If daemon and child are killed together (for example, SIGKILL to a service's cgroup), the next
 * daemon thaws the cgroups in the state file (frozen_list.h).
 *
 * Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/util/cgroups.h"

#define WATCHDOG_MAX 256 /* most frozen cgroups at a time */

struct watchdog;

/* Starts the child. Its name in `ps` is derived from the daemon's name. */
int watchdog_start(struct watchdog **ret, struct error *err);
/*
 * Makes the child thaw the remaining cgroups and end, and waits until it has ended. NULL is
 * allowed; returns NULL.
 */
struct watchdog *watchdog_stop(struct watchdog *watchdog);

/*
 * Returns a pidfd that becomes readable when the child has died. Nothing may stay frozen then. The
 * watchdog owns the descriptor.
 */
int watchdog_pidfd(const struct watchdog *watchdog);

/*
 * Adds a cgroup and waits until the child knows it. Returns -ENOSPC if it has WATCHDOG_MAX cgroups,
 * -EPIPE if the child is gone.
 */
int watchdog_add(struct watchdog *watchdog, const struct cgroup *cgroup);
void watchdog_remove(struct watchdog *watchdog, const struct cgroup *cgroup);
