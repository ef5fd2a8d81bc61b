/*
 * Gives the command of each `allot run` a cgroup of its own, below the cgroup in which the user started it. So all processes
 * that the command starts are known to be the tenant's, even orphans and processes with a cleaned environment. With the setting
 * guard_devices, only processes in such a cgroup may open NVIDIA's device files (device_filter.h). This concerns the processes
 * in systemd's user.slice, which has the sessions of users that have logged in.
 *
 * A command has no cgroup of its own if the daemon is not root, cgroup version 2 is not mounted, or the command was started
 * neither in a user's session nor in the root cgroup. The cgroups of services, containers and batch systems belong to other
 * programs.
 * Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct command_cgroups;
struct node;
struct peer;
struct tenant;

/* Call when the previous daemon's tenants are known: their commands keep their cgroups. */
int command_cgroups_start(struct node *node, struct command_cgroups **ret, struct error *err);
/* Removes the filter of devices. The cgroups stay. NULL is allowed; returns NULL. */
struct command_cgroups *command_cgroups_stop(struct command_cgroups *commands);

/*
 * Moves the tenant's command into the tenant's cgroup, which is made if necessary, but not processes that the command has
 * already started. Returns 0 also if the command gets no cgroup, unless guard_devices would then keep it from the GPU.
 */
int command_cgroups_add(struct tenant *tenant, const struct peer *command, struct error *err);
/* Moves the remaining processes to the parent cgroup. With guard_devices, kills those that have a GPU open. */
void command_cgroups_end(struct tenant *tenant, const char *why);

/* Returns true if `path`, a process's path in cgroup version 2, is the cgroup of the tenant's command or below it. */
bool command_cgroups_has(const struct tenant *tenant, const char *path);
/*
 * Sends a signal to all processes in the cgroup; SIGKILL also to those in cgroups below it. Returns -EOPNOTSUPP if the tenant
 * has no cgroup, -EPERM if this daemon is in it.
 */
int command_cgroups_signal(const struct tenant *tenant, int signal);

/* Checks a value of guard_devices: off, on, or users by name or number. */
int command_cgroups_check_guard(const char *value, struct error *err);
