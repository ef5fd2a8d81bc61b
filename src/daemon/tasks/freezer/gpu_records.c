#include "daemon/tasks/freezer/gpu_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "daemon/state/use.h"
#include "daemon/tasks/freezer/freezer.h"

#define MOST_CONTAINERS (GPU_TASKS_CONTAINERS + GPU_TASKS_LIVE_MAX)
#define MOST_TASKS (GPU_TASKS_HISTORY + GPU_TASKS_LIVE_MAX)
#define MOST_S 1e12 /* upper bound of a valid time, in seconds since 1970 */

static json_t *cards_to_json(const struct gpu_task_card *card, unsigned count)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < count; i++)
		if (card[i].used_ns || card[i].most_bytes)
			json_array_append_new(list, json_pack("{s:i, s:I, s:I}", "index", (int)i,
							      "used_ns", (json_int_t)card[i].used_ns,
							      "memory_most_bytes",
							      (json_int_t)card[i].most_bytes));
	return list;
}

static json_t *task_to_json(const struct gpu_task *t, uint64_t now_ns)
{
	return json_pack("{s:i, s:I, s:o, s:s, s:s, s:f, s:I, s:b, s:o}", "pid", t->pid,
			 "start_time", (json_int_t)t->start_time, "name",
			 json_clean_string(t->name), "tenant", t->tenant, "container",
			 t->container_id, "begun_s", t->begun_s, "lasted_ns",
			 (json_int_t)((t->ended_ns ? t->ended_ns : now_ns) - t->begun_ns), "ended",
			 t->ended_ns != 0, "devices", cards_to_json(t->card, t->tasks->card_count));
}

/* Saves the container's name, because the container engine forgets a container that is gone. */
static json_t *name_to_json(const struct gpu_container *c)
{
	return c->has_name
		       ? json_pack("{s:s, s:s, s:s, s:s}", "name", c->name.name, "pod", c->name.pod,
				   "namespace", c->name.namespace, "image", c->name.image)
		       : json_null();
}

static json_t *container_to_json(const struct gpu_container *c, unsigned card_count,
				 uint64_t half_life_ns, uint64_t now_ns)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:f, s:I, s:o, s:o}", "id", c->what.id, "engine",
			 c->what.engine, "v2_path", json_clean_string(c->what.v2_path), "v1_path",
			 json_clean_string(c->what.v1_path), "faded_use_s",
			 fade_use_ns(&c->fade, now_ns, half_life_ns) / (double)NSEC_PER_SEC,
			 "frozen_ns", (json_int_t)freezer_frozen_ns(c, now_ns), "devices",
			 cards_to_json(c->card, card_count), "called", name_to_json(c));
}

void gpu_records_to_json(const struct gpu_tasks *tasks, uint64_t half_life_ns, uint64_t now_ns,
			 json_t *json)
{
	json_t *containers = json_array(), *list = json_array();
	const struct gpu_container *c;
	const struct gpu_task *t;
	TAILQ_FOREACH(c, &tasks->containers, link)
		json_array_append_new(containers,
				      container_to_json(c, tasks->card_count, half_life_ns, now_ns));
	TAILQ_FOREACH(t, &tasks->ended, link)
		json_array_append_new(list, task_to_json(t, now_ns));
	TAILQ_FOREACH(t, &tasks->live, link)
		json_array_append_new(list, task_to_json(t, now_ns));
	json_object_set_new(json, "containers", containers);
	json_object_set_new(json, "tasks", list);
}

/* Reads a text into `field`. Refuses long or unprintable text. If the member is missing, the field stays empty. */
static int read_text(const json_t *json, const char *key, char *field, size_t size,
		     struct error *err)
{
	const char *text = NULL;
	int r = json_read_string(json, key, &text, err);
	if (r <= 0)
		return r;
	if (strlen(text) >= size || *text_clean_prefix_end(text, size))
		return error_set(err, EINVAL, "%s: is too long, or has control characters", key);
	strcpy(field, text);
	return 1;
}

static int cards_from_json(const json_t *json, const struct gpu_records_cards *cards,
			   struct gpu_task_card *card, struct error *err)
{
	json_t *list = NULL;
	if (json_read_array(json, "devices", &list, err) <= 0)
		return error_set(err, EINVAL, "devices: missing");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *d = json_array_get(list, i);
		int64_t index = 0, used_ns = 0, most_bytes = 0;
		if (json_read_int(d, "index", 0, (int64_t)cards->old_count - 1, &index, err) <= 0 ||
		    json_read_int(d, "used_ns", 0, INT64_MAX, &used_ns, err) <= 0 ||
		    json_read_int(d, "memory_most_bytes", 0, INT64_MAX, &most_bytes, err) <= 0)
			return error_set(err, EINVAL,
					 "devices: index, used_ns or memory_most_bytes is "
					 "missing or invalid");
		if (cards->now[index] < 0)
			continue;
		card[cards->now[index]].used_ns = (uint64_t)used_ns;
		card[cards->now[index]].most_bytes = (uint64_t)most_bytes;
	}
	return 0;
}

static int read_name(struct gpu_container *c, const json_t *json, struct error *err)
{
	struct engine_name *n = &c->name;
	int r = read_text(json, "name", n->name, sizeof(n->name), err);
	if (r >= 0)
		r = read_text(json, "pod", n->pod, sizeof(n->pod), err);
	if (r >= 0)
		r = read_text(json, "namespace", n->namespace, sizeof(n->namespace), err);
	if (r >= 0)
		r = read_text(json, "image", n->image, sizeof(n->image), err);
	c->has_name = json_is_object(json);
	return r;
}

static int read_container(struct gpu_container *c, const json_t *json,
			  const struct gpu_records_cards *cards,
			  const struct gpu_records_when *when, struct error *err)
{
	const char *engine = NULL;
	int64_t frozen_ns = 0;
	double use_s = -1;
	if (read_text(json, "id", c->what.id, sizeof(c->what.id), err) <= 0 || !c->what.id[0] ||
	    json_read_string(json, "engine", &engine, err) <= 0 ||
	    !(c->what.engine = container_engine(engine)) ||
	    read_text(json, "v2_path", c->what.v2_path, sizeof(c->what.v2_path), err) < 0 ||
	    read_text(json, "v1_path", c->what.v1_path, sizeof(c->what.v1_path), err) < 0 ||
	    json_read_number(json, "faded_use_s", &use_s, err) <= 0 ||
	    !(use_s >= 0 && use_s < USE_MOST_S) ||
	    json_read_int(json, "frozen_ns", 0, INT64_MAX, &frozen_ns, err) <= 0)
		return error_set(
			err, EINVAL,
			"containers: id, engine, v2_path, v1_path, faded_use_s or frozen_ns is missing or invalid");
	int r = cards_from_json(json, cards, c->card, err);
	if (r >= 0)
		r = read_name(c, json_object_get(json, "called"), err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < cards->count; i++)
		c->faded_ns += c->card[i].used_ns;
	c->frozen_ns = (uint64_t)frozen_ns;
	c->fade = fade_after(use_s * (double)NSEC_PER_SEC, when->passed_ns, when->now_ns,
			     when->half_life_ns);
	return 0;
}

static int read_task(struct gpu_task *t, const json_t *json, const struct gpu_records_cards *cards,
		     const struct gpu_records_when *when, bool *ret_ended, struct error *err)
{
	int64_t pid = 0, start_time = 0, lasted_ns = 0;
	if (json_read_int(json, "pid", 1, INT32_MAX, &pid, err) <= 0 ||
	    json_read_int(json, "start_time", 0, INT64_MAX, &start_time, err) <= 0 ||
	    json_read_int(json, "lasted_ns", 0, INT64_MAX, &lasted_ns, err) <= 0 ||
	    json_read_number(json, "begun_s", &t->begun_s, err) <= 0 ||
	    !(t->begun_s >= 0 && t->begun_s < MOST_S) ||
	    json_read_bool(json, "ended", ret_ended, err) <= 0 ||
	    read_text(json, "name", t->name, sizeof(t->name), err) <= 0 ||
	    read_text(json, "tenant", t->tenant, sizeof(t->tenant), err) <= 0 ||
	    read_text(json, "container", t->container_id, sizeof(t->container_id), err) <= 0)
		return error_set(
			err, EINVAL,
			"tasks: pid, start_time, lasted_ns, begun_s, ended, name, tenant or container is missing or invalid");
	t->pid = (int)pid;
	t->start_time = (uint64_t)start_time;
	t->pidfd = -1;
	/* begun_ns may wrap below 0 if the task began before the clock's zero: only its difference from ended_ns matters. */
	t->ended_ns = when->now_ns;
	t->begun_ns = when->now_ns - (uint64_t)lasted_ns;
	return cards_from_json(json, cards, t->card, err);
}

static int read_containers(struct gpu_records *records, const json_t *list,
			   const struct gpu_records_cards *cards,
			   const struct gpu_records_when *when, struct error *err)
{
	if (json_array_size(list) > MOST_CONTAINERS)
		return error_set(err, EINVAL, "containers: must have at most %d entries",
				 MOST_CONTAINERS);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct gpu_container *c = calloc(1, sizeof(*c) + cards->count * sizeof(c->card[0]));
		if (!c)
			return error_set_errno(err, ENOMEM, "containers");
		TAILQ_INSERT_TAIL(&records->containers, c, link);
		int r = read_container(c, json_array_get(list, i), cards, when, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_tasks(struct gpu_records *records, const json_t *list,
		      const struct gpu_records_cards *cards, const struct gpu_records_when *when,
		      struct error *err)
{
	if (json_array_size(list) > MOST_TASKS)
		return error_set(err, EINVAL, "tasks: must have at most %d entries", MOST_TASKS);
	for (size_t i = 0; i < json_array_size(list); i++) {
		bool ended = true;
		struct gpu_task *t = calloc(1, sizeof(*t) + cards->count * sizeof(t->card[0]));
		if (!t)
			return error_set_errno(err, ENOMEM, "tasks");
		int r = read_task(t, json_array_get(list, i), cards, when, &ended, err);
		/* After a reboot the pid belongs to another process, so the task does not continue. */
		if (r >= 0 && !ended && when->is_same_boot)
			TAILQ_INSERT_TAIL(&records->running, t, link);
		else
			TAILQ_INSERT_TAIL(&records->ended, t, link);
		if (r < 0)
			return r;
	}
	return 0;
}

int gpu_records_from_json(const json_t *json, const struct gpu_records_cards *cards,
			  const struct gpu_records_when *when, struct gpu_records **ret,
			  struct error *err)
{
	json_t *containers = NULL, *tasks = NULL;
	int r = json_read_array(json, "containers", &containers, err);
	if (r >= 0)
		r = json_read_array(json, "tasks", &tasks, err);
	if (r < 0)
		return r;
	struct gpu_records *records = calloc(1, sizeof(*records));
	if (!records)
		return error_set_errno(err, ENOMEM, "records");
	records->passed_ns = when->passed_ns;
	TAILQ_INIT(&records->containers);
	TAILQ_INIT(&records->ended);
	TAILQ_INIT(&records->running);
	r = read_containers(records, containers, cards, when, err);
	if (r >= 0)
		r = read_tasks(records, tasks, cards, when, err);
	if (r < 0) {
		gpu_records_free(records);
		return r;
	}
	*ret = records;
	return 0;
}

static void free_tasks(struct gpu_task_list *list)
{
	struct gpu_task *t;
	while ((t = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, t, link);
		free(t);
	}
}

struct gpu_records *gpu_records_free(struct gpu_records *records)
{
	struct gpu_container *c;
	if (!records)
		return NULL;
	free_tasks(&records->ended);
	free_tasks(&records->running);
	while ((c = TAILQ_FIRST(&records->containers))) {
		TAILQ_REMOVE(&records->containers, c, link);
		free(c);
	}
	free(records);
	return NULL;
}

void gpu_records_take(struct gpu_records *records, struct gpu_tasks *tasks)
{
	struct gpu_container *c;
	struct gpu_task *t;
	while ((c = TAILQ_FIRST(&records->containers))) {
		TAILQ_REMOVE(&records->containers, c, link);
		gpu_tasks_put_container(tasks, c);
	}
	while ((t = TAILQ_FIRST(&records->ended))) {
		TAILQ_REMOVE(&records->ended, t, link);
		gpu_tasks_put_ended(tasks, t);
	}
}

void gpu_records_take_task(struct gpu_records *records, struct gpu_task *record,
			   struct gpu_tasks *tasks, struct gpu_task *live)
{
	TAILQ_REMOVE(&records->running, record, link);
	if (!live) {
		gpu_tasks_put_ended(tasks, record);
		return;
	}
	live->begun_s = record->begun_s;
	for (unsigned i = 0; i < tasks->card_count; i++) {
		live->card[i].used_ns = record->card[i].used_ns;
		live->card[i].most_bytes = record->card[i].most_bytes;
		/* Count use from here on, because the time without a daemon does not count. */
		live->card[i].seen_ns = live->begun_ns;
	}
	live->begun_ns = record->begun_ns - records->passed_ns;
	free(record);
}
