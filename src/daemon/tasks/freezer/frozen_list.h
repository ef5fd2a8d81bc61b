/*
 * The state file "<run dir>/frozen": what this daemon has frozen, one directory a line. It is written before
 * a cgroup is frozen, so that a daemon that starts after one that was killed together with its watchdog
 * thaws what was left. A directory is believed only if it is a container's cgroup below a mount of
 * cgroups. Main thread only.
 */
#pragma once

#include "daemon/util/cgroups.h"

/* Writes the list anew, in one step; without any, removes it. -errno. */
int frozen_list_write(const char *run_dir, const struct cgroup *const *list, size_t count);
/* Thaws what such a file names, and removes it. How many were thawed; 0 when there is none. */
unsigned frozen_list_thaw(const char *run_dir, const struct cgroups *cgroups);
