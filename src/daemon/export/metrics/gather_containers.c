/* Gathers the figures of containers that use a GPU, with or without allot's library, and of the freezer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/export/metrics/exposition.h"
#include "daemon/export/metrics/gather_figures.h"
#include "daemon/tasks/freezer/freezer.h"
#include "daemon/tasks/watch/gpu_watch.h"

static void label_container(char *labels, const struct gpu_container *c)
{
	exposition_label(labels, METRICS_LABELS_MAX, "container", c->what.id);
	exposition_label(labels, METRICS_LABELS_MAX, "engine", c->what.engine);
}

/* Only a container that has GPU work or is frozen gets samples of its own. */
static bool has_samples(const struct gpu_container *c)
{
	return c->live || c->is_frozen;
}

static void gather_container(struct node *node, const struct gpu_container *c, uint64_t now_ns,
			     struct metrics_figures *f)
{
	struct metrics_container *m = &f->container[f->container_count++];
	m->is_frozen = c->is_frozen;
	m->frozen_ns = freezer_frozen_ns(c, now_ns);
	label_container(m->labels, c);
	for (unsigned i = 0; i < node->card_count; i++) {
		const struct gpu_task_card *card = &c->card[i];
		if (!card->most_bytes && !card->used_ns && !card->is_present)
			continue;
		struct metrics_container_device *d =
			&f->container_device[f->container_device_count++];
		d->held_bytes = card->held_bytes;
		d->used_ns = card->used_ns;
		label_container(d->labels, c);
		metrics_label_card(d->labels, &node->card[i]);
	}
}

int metrics_gather_containers(struct node *node, uint64_t now_ns, struct metrics_figures *f)
{
	size_t count = 0;
	const struct gpu_container *c;
	if (!node->watch)
		return 0;
	const struct gpu_tasks *tasks = gpu_watch_tasks(node->watch);
	TAILQ_FOREACH(c, &tasks->containers, link)
		count += has_samples(c);
	f->container = calloc(count + 1, sizeof(*f->container));
	f->container_device = calloc(count * node->card_count + 1, sizeof(*f->container_device));
	if (!f->container || !f->container_device)
		return -ENOMEM;
	TAILQ_FOREACH(c, &tasks->containers, link) {
		f->daemon.containers[freezer_state(c)]++;
		f->daemon.containers_without += c->live && !c->has_library;
		if (has_samples(c))
			gather_container(node, c, now_ns, f);
	}
	f->daemon.is_watching = true;
	f->daemon.tasks = tasks->live_count;
	f->daemon.tasks_begun = tasks->begun;
	f->daemon.freezer = freezer_figures(gpu_watch_freezer(node->watch), now_ns);
	return 0;
}
