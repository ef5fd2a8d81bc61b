/* Makes the JSON of `allot tasks --json`, and of the containers in `allot ps --json` (docs/reference/protocol.md). */
#include <string.h>

#include "base/clock.h"
#include "daemon/tasks/violation/violations.h"
#include "daemon/tasks/watch/container_swap.h"
#include "daemon/tasks/watch/gpu_watch.h"
#include "daemon/tasks/watch/gpu_watch_inside.h"

static double seconds(uint64_t ns)
{
	return (double)(ns / 1000) / 1e6;
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

/* Lists the cards that the task or container has ever used. */
static json_t *cards_to_json(const struct gpu_task_card *card, unsigned count)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < count; i++)
		if (card[i].most_bytes || card[i].used_ns || card[i].is_present)
			json_array_append_new(
				list, json_pack("{s:i, s:I, s:I, s:f}", "index", (int)i,
						"memory_used_bytes", (json_int_t)card[i].held_bytes,
						"memory_most_bytes", (json_int_t)card[i].most_bytes,
						"used_s", seconds(card[i].used_ns)));
	return list;
}

static json_t *task_to_json(const struct gpu_task *t, const struct violations *v, uint64_t now_ns)
{
	return json_pack("{s:i, s:s, s:o, s:o, s:f, s:f, s:b, s:o, s:o}", "pid", t->pid, "name",
			 t->name, "container", text_or_null(t->container_id), "tenant",
			 text_or_null(t->tenant), "begun_s", t->begun_s, "lasted_s",
			 seconds((t->ended_ns ? t->ended_ns : now_ns) - t->begun_ns), "ended",
			 t->ended_ns != 0, "devices", cards_to_json(t->card, t->tasks->card_count),
			 "violation", t->ended_ns ? json_null() : violations_of_process(v, t->pid));
}

static json_t *add_name(json_t *json, const struct gpu_container *c)
{
	json_object_set_new(json, "name", text_or_null(c->name.name));
	json_object_set_new(json, "pod", text_or_null(c->name.pod));
	json_object_set_new(json, "namespace", text_or_null(c->name.namespace));
	json_object_set_new(json, "image", text_or_null(c->name.image));
	return json;
}

static bool has_container(const json_t *list, const char *id)
{
	size_t i;
	json_t *c;
	json_array_foreach((json_t *)(uintptr_t)list, i,
			   c) if (!strcmp(json_string_value(json_object_get(c, "id")),
					  id)) return true;
	return false;
}

json_t *gpu_watch_tenant_containers(const struct gpu_watch *w, const char *tenant)
{
	json_t *list = json_array();
	const struct gpu_task *t;
	if (!w)
		return list;
	TAILQ_FOREACH(t, &w->tasks->live, link) {
		const struct gpu_container *c = t->container;
		if (!c || strcmp(t->tenant, tenant) != 0 || has_container(list, c->what.id))
			continue;
		json_array_append_new(list, add_name(json_pack("{s:s, s:s}", "id", c->what.id,
							       "engine", c->what.engine),
						     c));
	}
	return list;
}

static json_t *container_to_json(const struct gpu_watch *w, const struct gpu_container *c,
				 uint64_t now_ns)
{
	const char *path = c->what.v2_path[0] ? c->what.v2_path : c->what.v1_path;
	uint64_t half_life_ns = w->node->config.use_half_life_ns;
	const char *moved = container_swap_state(c), *state = moved ? moved : freezer_state_name(c);
	json_t *json = json_pack("{s:s, s:s, s:o, s:s, s:i, s:b, s:f, s:f, s:o, s:o}", "id",
				 c->what.id, "engine", c->what.engine, "cgroup",
				 json_clean_string(path), "state", state, "tasks", (int)c->live,
				 "library", c->has_library, "frozen_s",
				 seconds(freezer_frozen_ns(c, now_ns)), "faded_use_s",
				 seconds((uint64_t)fade_use_ns(&c->fade, now_ns, half_life_ns)),
				 "devices", cards_to_json(c->card, w->tasks->card_count), "swap",
				 container_swap_to_json(c));
	return add_name(json, c);
}

void gpu_watch_to_json(struct gpu_watch *w, json_t *reply)
{
	json_t *tasks = json_array(), *containers = json_array();
	uint64_t now_ns = clock_now_ns();
	const struct gpu_container *c;
	const struct gpu_task *t;
	if (w) {
		TAILQ_FOREACH(t, &w->tasks->ended, link)
			json_array_append_new(tasks, task_to_json(t, w->node->violations, now_ns));
		TAILQ_FOREACH(t, &w->tasks->live, link)
			json_array_append_new(tasks, task_to_json(t, w->node->violations, now_ns));
		TAILQ_FOREACH(c, &w->tasks->containers, link)
			json_array_append_new(containers, container_to_json(w, c, now_ns));
	}
	json_object_set_new(reply, "version", json_integer(1));
	json_object_set_new(reply, "watch",
			    json_string(!w               ? "off"
					: w->open_events ? "openings"
							 : "polling"));
	json_object_set_new(reply, "freezer", json_boolean(w && w->node->config.is_freezing));
	json_object_set_new(reply, "tasks", tasks);
	json_object_set_new(reply, "containers", containers);
}
