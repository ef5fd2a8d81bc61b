/*
 * The state file "<run dir>/frozen": the cgroups that this daemon has frozen, one directory per
 * line. It is written before a cgroup is frozen. So if a daemon was killed together with its
 * watchdog, the next daemon can thaw them. A directory is accepted only if it is a container's
 * cgroup below a cgroup mount. Main thread only.
 */
#pragma once

#include "daemon/util/cgroups.h"

/* Replaces the list atomically, or removes the file if the list is empty. Returns 0 or -errno. */
int frozen_list_write(const char *run_dir, const struct cgroup *const *list, size_t count);
/*
 * Thaws the cgroups in the file and removes the file. Returns how many were thawed; 0 if there is
 * no file.
 */
unsigned frozen_list_thaw(const char *run_dir, const struct cgroups *cgroups);
