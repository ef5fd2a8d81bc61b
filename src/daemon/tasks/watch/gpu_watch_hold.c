/* Freezes and thaws containers with a process that bypasses the library (daemon/tasks/violation/violations.h). */
#include <errno.h>
#include <string.h>

#include "daemon/tasks/watch/container_swap.h"
#include "daemon/tasks/watch/gpu_watch.h"
#include "daemon/tasks/watch/gpu_watch_inside.h"

int gpu_watch_hold(struct gpu_watch *w, int pid, char ret_id[CONTAINER_ID_MAX], struct error *err)
{
	const struct gpu_task *t = gpu_tasks_find(w->tasks, pid);
	if (!t || !t->container)
		return error_set(err, ENOENT, "process %d is in no container", pid);
	if (container_swap_is_away(t->container))
		return error_set(
			err, EBUSY,
			"container %.*s can't be frozen: it is suspended, with its GPU memory in host memory",
			CONTAINER_SHORT_ID, t->container->what.id);
	int r = freezer_hold(w->freezer, t->container, FREEZER_VIOLATION, err);
	if (r < 0)
		return r;
	strcpy(ret_id, t->container->what.id);
	return 0;
}

bool gpu_watch_is_held(const struct gpu_watch *w, const char *id)
{
	const struct gpu_container *c = gpu_tasks_find_id(w->tasks, id);
	return c && c->is_frozen && (c->holds & FREEZER_VIOLATION);
}

int gpu_watch_release(struct gpu_watch *w, const char *id, struct error *err)
{
	struct gpu_container *c = gpu_tasks_find_id(w->tasks, id);
	return c ? freezer_release(w->freezer, c, FREEZER_VIOLATION, err) : 0;
}

bool gpu_watch_is_away(const struct gpu_watch *w, int pid)
{
	const struct gpu_task *t = w ? gpu_tasks_find(w->tasks, pid) : NULL;
	return t && t->container && container_swap_is_away(t->container);
}
