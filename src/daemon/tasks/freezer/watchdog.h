/*
 * The watchdog is a child process that knows the frozen cgroups. It thaws them when its socket shows that the daemon has ended.
 * It has its own session and ignores the signals that end daemons, so it ends only if killed deliberately.
 *
 *     daemon: watchdog_add(cgroup)     before it freezes
 *             watchdog_remove(cgroup)  after it has thawed
 *     child:  when the daemon's end of the socket closes, thaws each remaining cgroup
 *
 * If daemon and child are killed together (for example, SIGKILL to a service's cgroup), the next daemon thaws the cgroups in
 * the state file (frozen_list.h). Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/util/cgroups.h"

#define WATCHDOG_MAX 256 /* most frozen cgroups at a time; watchdog_add() refuses more */

struct watchdog;

/* Starts the child, whose process name is "allot-thaw". */
int watchdog_start(struct watchdog **ret, struct error *err);
/* Makes the child thaw the remaining cgroups and end, and waits for its end. NULL is allowed; returns NULL. */
struct watchdog *watchdog_stop(struct watchdog *watchdog);

/* Returns the watchdog's pidfd, readable when the child has died. The caller must then thaw all containers. */
int watchdog_pidfd(const struct watchdog *watchdog);

/*
 * Waits until the child knows the cgroup. Returns -ENOSPC above WATCHDOG_MAX, -EPIPE if the child is gone. Kills a child that
 * does not answer within a second.
 */
int watchdog_add(struct watchdog *watchdog, const struct cgroup *cgroup);
/* Tells the child to forget the cgroup, without waiting for it. Kills a child that has stopped reading. */
void watchdog_remove(struct watchdog *watchdog, const struct cgroup *cgroup);
