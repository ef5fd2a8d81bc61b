/*
 * A cgroup with processes for tests, in a hierarchy of version 1 or 2 that this machine has mounted and the test may write.
 * cgroup_scene_end() thaws the cgroup, kills the processes and removes all.
 */
#pragma once

#include <sys/types.h>

#include "daemon/util/cgroups.h"

#define SCENE_ID "3f4c1a0b9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a"
#define SCENE_PROCESSES 7

struct cgroup_scene {
	struct cgroups cgroups;
	struct container container; /* "/allot-test-<pid>/docker/<SCENE_ID>" */
	struct cgroup cgroup;
	pid_t pid[SCENE_PROCESSES]; /* process i increments counter[8 * i] while it runs */
	volatile unsigned long *counter;
};

/* Makes the cgroup. Returns false, and makes nothing, if this machine has no such hierarchy that may be written. */
bool cgroup_scene_make(struct cgroup_scene *scene, bool v2);
void cgroup_scene_start(struct cgroup_scene *scene);
/* Processes that do nothing but start children, which end at once. */
void cgroup_scene_start_forking(struct cgroup_scene *scene);
/* Returns true as soon as one of the processes runs, false if none does within `ms`. */
bool cgroup_scene_runs(struct cgroup_scene *scene, unsigned ms);
/* Waits up to timeout_ms until all processes of the cgroup are frozen. Returns as cgroup_is_frozen(). */
int cgroup_wait_frozen(const struct cgroup *cgroup, unsigned timeout_ms);
void cgroup_scene_end(struct cgroup_scene *scene);
