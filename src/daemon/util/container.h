/*
 * Finds a process's container from the text of /proc/PID/cgroup alone, without asking an engine. Each engine puts the
 * container's id into the cgroup's name, in a form of its own; container.c has a table of these forms. The deepest part of a
 * path that matches a form is the container. Parts below it (a systemd or an init scope inside) belong to the container; parts
 * above it are slices and pods. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>

#define CONTAINER_ID_MAX 128
#define CONTAINER_PATH_MAX 1024
#define CONTAINER_SHORT_ID 12 /* characters of an id that engines display */

struct container {
	/* "docker", "containerd", "cri-o" or "podman"; "container" if unknown */
	const char *engine;
	char id[CONTAINER_ID_MAX];
	/* path of the container's cgroup in version 2, below the root, without a final slash; "" if none */
	char v2_path[CONTAINER_PATH_MAX];
	/* the same path in the freezer's hierarchy of version 1 */
	char v1_path[CONTAINER_PATH_MAX];
};

/*
 * Finds the container in one cgroup path. The first *ret_length bytes of the path lead to the container's own cgroup.
 * *ret_engine and ret_id identify the container. Returns false if the path contains no container.
 */
bool container_match(const char *path, unsigned *ret_length, const char **ret_engine,
		     char ret_id[CONTAINER_ID_MAX]);

/* Returns the one of container_match()'s static engine names that equals `name`, or NULL. */
const char *container_engine(const char *name);

/*
 * Finds the container in the whole text of /proc/PID/cgroup (proc(5), cgroups(7)). Lines are "number:controllers:path";
 * version 2 has number 0 and no controllers. Any line may identify the container. v2_path is from the line of version 2,
 * v1_path from the line of version 1's freezer. Returns false if the process is in no container.
 */
bool container_from_cgroups(const char *text, struct container *ret);

/*
 * Returns true if a process whose own cgroup is `own` may freeze the cgroup `path`. False for the root and for a cgroup that
 * contains `own`: the process would freeze itself, and could not thaw anything.
 */
bool container_may_freeze(const char *path, const char *own);

/*
 * Reads the path in one hierarchy from the text of /proc/PID/cgroup. `controller` is "" for version 2, or the name of a
 * controller of version 1. Returns false if the text has no such hierarchy.
 */
bool container_read_path(const char *text, const char *controller,
			 char ret_path[CONTAINER_PATH_MAX]);
