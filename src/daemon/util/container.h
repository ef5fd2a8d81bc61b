/*
 * From a process to its container, by the text of /proc/PID/cgroup alone: no engine is asked. Each engine
 * names the cgroup of a container after the container's id, in a manner of its own; one row of a table
 * says how (container.c). The deepest part of a path that fits a row is the container: what is below it
 * (a systemd or an init scope inside) belongs to it, what is above it are slices and pods.
 *
 * Pure; thread safe.
 */
#pragma once

#include <stdbool.h>

#define CONTAINER_ID_MAX 128
#define CONTAINER_PATH_MAX 1024
#define CONTAINER_SHORT_ID 12 /* characters of an id that engines show */

struct container {
	const char *engine; /* "docker", "containerd", "cri-o", "podman"; "container" when not told */
	char id[CONTAINER_ID_MAX];
	/* Its cgroup, below the mount of the hierarchy, without a slash at the end; "": it has none there. */
	char v2_path[CONTAINER_PATH_MAX];
	char v1_path[CONTAINER_PATH_MAX]; /* of the freezer of version 1 */
};

/*
 * The container that one path of a cgroup lies in: *ret_length is how much of the path is the
 * container's own cgroup, *ret_engine and ret_id which it is. False: in none.
 */
bool container_match(const char *path, unsigned *ret_length, const char **ret_engine,
		     char ret_id[CONTAINER_ID_MAX]);

/* The engine of that name, of those that container_match() tells; NULL: there is none. */
const char *container_engine(const char *name);

/*
 * Of the whole text of /proc/PID/cgroup (proc(5), cgroups(7)): lines "number:controllers:path", version
 * 2 being number 0 without controllers. Every line may name the container; the two that can freeze say
 * where. False: the process is in no container.
 */
bool container_from_cgroups(const char *text, struct container *ret);

/*
 * May this cgroup be frozen by a process whose own cgroup in that hierarchy is `own`? Never the root,
 * never what holds `own` itself: a freezer that is frozen thaws nothing.
 */
bool container_may_freeze(const char *path, const char *own);

/* The path of one hierarchy, "" for version 2 or a controller's name, in such a text; false: none. */
bool container_read_path(const char *text, const char *controller,
			 char ret_path[CONTAINER_PATH_MAX]);
