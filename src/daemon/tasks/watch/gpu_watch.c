#include "daemon/tasks/watch/gpu_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/census.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/freezer/freezer.h"
#include "daemon/tasks/freezer/gpu_records.h"
#include "daemon/tasks/watch/container_swap.h"
#include "daemon/tasks/watch/gpu_watch_inside.h"
#include "daemon/tasks/watch/open_events.h"
#include "daemon/util/procfs.h"

#define NVIDIA_NODE "/dev/nvidia-uvm" /* CUDA opens this in cuInit; NVML never does */
#define SIM_NODE_SUFFIX ".uvm" /* the node beside the simulated card's socket: src/sim/wire.h */
#define NAMESAKES_TOLD 16
/* interval of the census while a container starts or waits */
#define SOON_NS (50 * NSEC_PER_MSEC)
/* Census interval if open_events.h reports new tasks and all tasks belong to tenants: no census is needed to find tasks. */
#define SELDOM_NS (10 * NSEC_PER_SEC)

static void plan_reading(struct gpu_watch *w)
{
	uint64_t every_ns = w->node->census_every_ns;
	if (!every_ns)
		every_ns = w->node->config.census_ns;
	if (freezer_needs_census_soon(w->freezer))
		every_ns = every_ns < SOON_NS ? every_ns : SOON_NS;
	else if (w->open_events && !w->foreign)
		every_ns = SELDOM_NS;
	if (every_ns == w->every_ns)
		return;
	w->every_ns = every_ns;
	loop_arm(w->timer, every_ns, every_ns);
}

static void reading_due(void *data, uint32_t events)
{
	struct gpu_watch *w = data;
	if (w->foreign || freezer_needs_census_soon(w->freezer))
		census_request(w->node->census);
	else
		census_request_if_changed(w->node);
}

static struct process *find_process(struct node *node, int pid)
{
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->slot_limit; i++)
			if (t->process[i] && t->process[i]->pid == pid)
				return t->process[i];
	return NULL;
}

/* Notes the task's tenant, unless one is noted already. The noted tenant stays, even after the tenant's end. */
static void note_tenant(struct gpu_watch *w, struct gpu_task *t)
{
	const struct process *p = find_process(w->node, t->pid);
	if (!p || t->tenant[0])
		return;
	snprintf(t->tenant, sizeof(t->tenant), "%s", p->tenant->terms.name);
	snprintf(p->tenant->container_id, sizeof(p->tenant->container_id), "%s", t->container_id);
	if (t->container)
		t->container->has_library = true;
}

/* Notes the tenant of a task that joined the tenant only after it had begun. The freezer then lets the task's container run. */
static void look_again(struct gpu_watch *w, struct gpu_task *t)
{
	if (t->tenant[0])
		return;
	note_tenant(w, t);
	if (t->tenant[0] && t->container)
		freezer_task_begun(w->freezer, t, 0, true);
}

/* Returns false if the process is gone or is this daemon, or if no task can be added. */
static bool note_task(struct gpu_watch *w, int pid)
{
	struct gpu_task *t;
	bool is_new;
	int r = pid == getpid() ? -ESRCH : gpu_tasks_add(w->tasks, pid, &t, &is_new);
	bool *is_logged = r == -ENOSPC ? &w->is_full_logged : &w->is_failure_logged;
	if (r < 0 && r != -ESRCH && !*is_logged) {
		*is_logged = true;
		if (r == -ENOSPC)
			log_warning("more than %d processes use GPUs at a time: further ones are "
				    "not recorded (logged once)",
				    GPU_TASKS_LIVE_MAX);
		else
			log_warning("process %d uses a GPU and can't be recorded: %s (logged once)",
				    pid, strerror(-r));
	}
	if (r < 0)
		return false;
	if (!is_new) {
		look_again(w, t);
		return true;
	}
	note_tenant(w, t);
	for (unsigned i = 0; t->container && i < w->tasks->card_count; i++)
		t->card[i].frozen_ns = freezer_frozen_ns(t->container, t->begun_ns);
	node_save_use_soon(w->node);
	log_debug("GPU task: process %d (%s)%s%s uses a GPU", pid, t->name,
		  t->container_id[0] ? " of container " : "", t->container_id);
	if (t->container)
		freezer_task_begun(w->freezer, t, gpu_watch_cards(w, pid), !w->has_read);
	gpu_watch_request_names(w);
	return true;
}

static void node_opened(void *data, int pid)
{
	struct gpu_watch *w = data;
	/* Ignore the daemon's own helper (checkpoint.h), which opens the node for driver calls and has no GPU work. */
	if (procfs_is_same_program(pid) || !note_task(w, pid))
		return;
	if (freezer_needs_census_soon(w->freezer))
		census_request(w->node->census);
	w->foreign = true; /* until a census shows whether the task belongs to a tenant */
	plan_reading(w);
}

static void task_ended(void *data, struct gpu_task *t)
{
	struct gpu_watch *w = data;
	log_debug("GPU task: process %d (%s) has ended", t->pid, t->name);
	freezer_task_ended(w->freezer, t);
	if (t->container && !t->container->live)
		container_swap_forget(w, t->container);
	node_save_use_soon(w->node);
	/* Memory has become free, so request a census, which lets waiting containers run if they fit. */
	if (freezer_needs_census_soon(w->freezer)) {
		census_request(w->node->census);
		plan_reading(w);
	}
}

bool gpu_watch_is_governed(const struct gpu_watch *w, const struct census_card *seen)
{
	uint64_t start_time;
	/* The driver's list may have been cut if it is full. */
	if (!seen->processes_known || seen->process_count >= CENSUS_MAX_PROCESSES)
		return false;
	for (size_t i = 0; i < seen->process_count; i++) {
		int pid = seen->process[i].pid;
		const struct gpu_task *t = gpu_tasks_find(w->tasks, pid);
		/* Ignore a process that has ended: it will soon hold no memory. */
		if (t ? !(t->container && t->container->item.cards)
		      : pid != getpid() && procfs_start_time(pid, &start_time) >= 0)
			return false;
	}
	return true;
}

/* Returns memory that containers must not use: granted to tenants that do not hold it yet, or kept for waiting tenants. */
static uint64_t promised_bytes(struct node *node, const struct card *card)
{
	uint64_t bytes = card->kept_bytes;
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned d = 0; d < t->terms.device_count; d++) {
			if (t->terms.device[d].card != card || t->terms.on_full == ON_FULL_FAIL ||
			    tenant_is_off_card(t))
				continue;
			uint64_t taken = tenant_taken_bytes(t, d),
				 used = tenant_usage(t, d).used_bytes;
			bytes += taken > used ? taken - used : 0;
		}
	return bytes;
}

uint64_t gpu_watch_starting_bytes(const struct gpu_watch *w, unsigned card)
{
	return w ? freezer_starting_bytes(w->freezer, card) : 0;
}

static void update_freezer(struct gpu_watch *w, const struct census_card *cards)
{
	struct freeze_card free_cards[FREEZE_MAX_CARDS] = { 0 };
	uint64_t begun_ns = UINT64_MAX;
	for (unsigned i = 0; i < w->tasks->card_count; i++) {
		uint64_t size = w->node->card[i].info.memory_bytes;
		/* A card that cannot be read counts as free, so that no container waits for that card. */
		uint64_t used = cards[i].memory_known ? cards[i].memory.used_bytes : 0;
		used += promised_bytes(w->node, &w->node->card[i]);
		free_cards[i].free_bytes = size > used ? size - used : 0;
		free_cards[i].is_empty = gpu_watch_is_governed(w, &cards[i]);
		if (cards[i].begun_ns < begun_ns)
			begun_ns = cards[i].begun_ns;
	}
	container_swap_read(w, begun_ns);
	freezer_read(w->freezer, free_cards, begun_ns);
}

void gpu_watch_census(struct gpu_watch *w, const struct census_card *cards)
{
	struct gpu_task *t;
	if (!w)
		return;
	for (unsigned i = 0; i < w->tasks->card_count; i++)
		for (size_t k = 0; cards[i].processes_known && k < cards[i].process_count; k++) {
			/* A pidfd reports the end of each task, so the pid still means the same process. */
			t = gpu_tasks_find(w->tasks, cards[i].process[k].pid);
			if (t)
				look_again(w, t);
			else
				note_task(w, cards[i].process[k].pid);
		}
	w->has_read = true;
	w->foreign = false;
	TAILQ_FOREACH(t, &w->tasks->live, link)
		w->foreign |= !t->tenant[0];
	gpu_watch_count(w, cards);
	update_freezer(w, cards);
	census_enable_use(w->node->census, w->foreign);
	gpu_watch_request_names(w);
	plan_reading(w);
	/* A container started after this census began, so another census is needed at once. */
	if (freezer_needs_census_now(w->freezer))
		census_request(w->node->census);
}

const struct gpu_tasks *gpu_watch_tasks(const struct gpu_watch *w)
{
	return w->tasks;
}

const struct freezer *gpu_watch_freezer(const struct gpu_watch *w)
{
	return w->freezer;
}

static int fail_ambiguous(const char *name, struct gpu_container *const *c, size_t count,
			  struct error *err)
{
	char ids[NAMESAKES_TOLD * (CONTAINER_SHORT_ID + 2) + 8] = "";
	for (size_t i = 0; i < count && i < NAMESAKES_TOLD; i++) {
		size_t n = strlen(ids);
		snprintf(ids + n, sizeof(ids) - n, "%s%.*s", i ? ", " : "", CONTAINER_SHORT_ID,
			 c[i]->what.id);
	}
	return error_set(err, EINVAL, "'%.63s': %zu containers match; name one by its id: %s%s",
			 name, count, ids, count > NAMESAKES_TOLD ? ", ..." : "");
}

int gpu_watch_set_paused(struct gpu_watch *w, const char *name, bool paused, bool swap_out,
			 bool poll, bool *ret_moving, struct error *err)
{
	struct gpu_container *c[NAMESAKES_TOLD];
	size_t count = w ? gpu_tasks_find_containers(w->tasks, name, c, NAMESAKES_TOLD) : 0;
	if (count > 1)
		return fail_ambiguous(name, c, count, err);
	if (count == 0)
		return error_set(
			err, ENOENT,
			"'%.63s': neither a tenant nor a container with GPU work has this name: allot "
			"ps and allot tasks list them",
			name);
	if (swap_out || poll || (!paused && container_swap_is_away(c[0])))
		return container_swap(w, c[0], swap_out, poll, ret_moving, err);
	return paused ? freezer_hold(w->freezer, c[0], FREEZER_PAUSED, err)
		      : freezer_resume(w->freezer, c[0], err);
}

static void start_openings(struct gpu_watch *w)
{
	struct node *node = w->node;
	struct error err = { 0 };
	char paths[NODE_PATH_MAX + CONFIG_PATH_MAX];
	if (strcmp(node->config.task_nodes, "auto") != 0)
		snprintf(paths, sizeof(paths), "%s", node->config.task_nodes);
	else if (node->simulated)
		snprintf(paths, sizeof(paths), "%s" SIM_NODE_SUFFIX, node->sim_socket);
	else
		snprintf(paths, sizeof(paths), "%s", NVIDIA_NODE);
	if (open_events_start(node->loop, paths, node_opened, w, &w->open_events, &err) < 0)
		log_warning("GPU work without the library is noticed by polling alone, so a container "
			    "may hold GPU memory before allotd notices the container: %s",
			    err.text);
	else if (!open_events_has_connector(w->open_events))
		log_info("the kernel's process connector can't be used (it needs CAP_NET_ADMIN and "
			 "the host's network and pid namespaces). So allotd scans all processes once a "
			 "second, to find containers that have their own device nodes for GPUs");
}

/* Takes over the previous daemon's records of tasks, so that running tasks do not count as new. */
static void take_records(struct gpu_watch *w)
{
	struct gpu_records *records = w->node->records;
	struct gpu_task *record;
	if (!records)
		return;
	gpu_records_take(records, w->tasks);
	while ((record = TAILQ_FIRST(&records->running))) {
		uint64_t start_time;
		bool lives = procfs_start_time(record->pid, &start_time) >= 0 &&
			     start_time == record->start_time && note_task(w, record->pid);
		gpu_records_take_task(records, record, w->tasks,
				      lives ? gpu_tasks_find(w->tasks, record->pid) : NULL);
	}
	w->node->records = gpu_records_free(records);
}

void gpu_watch_records(struct gpu_watch *w, json_t *json)
{
	if (w)
		gpu_records_to_json(w->tasks, w->node->config.use_half_life_ns, clock_now_ns(),
				    json);
}

int gpu_watch_start(struct node *node, struct gpu_watch **ret, struct error *err)
{
	if (!node->config.is_freezing && (node->is_private || !node->config.watch_tasks)) {
		node->records = gpu_records_free(node->records);
		return 0;
	}
	struct gpu_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return error_set_errno(err, ENOMEM, "watch of GPU work");
	w->node = node;
	int r = gpu_tasks_new(node->loop, node->card_count,
			      (struct gpu_tasks_events){ task_ended, w }, &w->tasks, err);
	if (r >= 0)
		r = freezer_new(node->loop, &node->config, node->run_dir, w->tasks, &w->freezer,
				err);
	if (r >= 0)
		r = gpu_watch_start_names(w, err);
	if (r >= 0 && (r = loop_add_timer(node->loop, reading_due, w, &w->timer)) < 0)
		error_set_errno(err, -r, "watch of GPU work: timer");
	if (r < 0) {
		gpu_watch_stop(w);
		return r;
	}
	start_openings(w);
	/* Find the tasks that already exist: from the records, and by a census. */
	take_records(w);
	w->foreign = true;
	census_enable_use(node->census, true);
	census_request(node->census);
	plan_reading(w);
	*ret = w;
	return 0;
}

struct gpu_watch *gpu_watch_stop(struct gpu_watch *w)
{
	if (!w)
		return NULL;
	engine_names_stop(w->names);
	open_events_stop(w->open_events);
	loop_remove(w->timer);
	if (w->tasks)
		container_swap_forget_all(w);
	freezer_free(w->freezer);
	gpu_tasks_free(w->tasks);
	free(w);
	return NULL;
}
