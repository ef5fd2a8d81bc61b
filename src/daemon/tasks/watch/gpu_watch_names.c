/* Asks container engines for the name of a container when its first task begins. Asks again only after a failure. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/watch/gpu_watch.h"
#include "daemon/tasks/watch/gpu_watch_inside.h"
#include "daemon/tasks/watch/use_state.h"

static void answered(void *data, const char *id, const struct engine_name *name)
{
	struct gpu_watch *w = data;
	struct gpu_container *c = gpu_tasks_find_id(w->tasks, id);
	if (!c)
		return;
	c->is_name_requested = false;
	if (!name) {
		c->name_retry_ns = clock_now_ns() + engine_names_retry_ns(++c->name_failures);
		return;
	}
	c->name = *name;
	c->has_name = c->is_name_current = true;
	log_debug("container %.*s is %s%s%s", CONTAINER_SHORT_ID, id, name->name,
		  name->pod[0] ? " of pod " : "", name->pod);
	node_save_use_soon(w->node);
}

void gpu_watch_request_names(struct gpu_watch *w)
{
	struct gpu_container *c;
	uint64_t now_ns = clock_now_ns();
	if (!w->names)
		return;
	TAILQ_FOREACH(c, &w->tasks->containers, link)
		if (c->live && !c->is_name_current && !c->is_name_requested &&
		    now_ns >= c->name_retry_ns)
			c->is_name_requested = engine_names_request(w->names, &c->what);
}

int gpu_watch_start_names(struct gpu_watch *w, struct error *err)
{
	struct engines engines;
	int r = engines_parse(w->node->config.container_engines, &engines, err);
	return r < 0 ? r : engine_names_start(w->node->loop, &engines, answered, w, &w->names, err);
}

const struct engine_name *gpu_watch_tenant_name(const struct gpu_watch *w, const struct tenant *t)
{
	const struct gpu_container *c = w && t->container_id[0]
						? gpu_tasks_find_id(w->tasks, t->container_id)
						: NULL;
	return c && c->has_name ? &c->name : NULL;
}

static void rename_all(struct gpu_task_list *list, const char *from, const char *to)
{
	struct gpu_task *t;
	TAILQ_FOREACH(t, list, link)
		if (!strcmp(t->tenant, from))
			snprintf(t->tenant, sizeof(t->tenant), "%s", to);
}

void gpu_watch_rename_tenant(struct gpu_watch *w, const char *from, const char *to)
{
	if (!w)
		return;
	rename_all(&w->tasks->live, from, to);
	rename_all(&w->tasks->ended, from, to);
	node_save_use_soon(w->node);
}
