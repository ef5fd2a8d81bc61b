/*
 * The file "<run dir>/frozen" lists the cgroups that this daemon freezes, one directory per line. It is written before
 * freezing. If a daemon is killed together with its watchdog (watchdog.h), the next daemon thaws these cgroups. Only a
 * container's cgroup below a cgroup mount is accepted. Main thread only.
 */
#pragma once

#include "daemon/util/cgroups.h"

/* Replaces the list, or removes the file if the list is empty. Returns 0 or -errno. */
int frozen_list_write(const char *run_dir, const struct cgroup *const *list, size_t count);
/* Thaws the cgroups in the file, and removes the file. Returns how many were thawed. */
unsigned frozen_list_thaw(const char *run_dir, const struct cgroups *cgroups);
