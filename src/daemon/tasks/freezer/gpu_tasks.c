#include "daemon/tasks/freezer/gpu_tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "daemon/util/procfs.h"

struct gpu_container *gpu_tasks_find_id(struct gpu_tasks *tasks, const char *id)
{
	struct gpu_container *c;
	TAILQ_FOREACH(c, &tasks->containers, link)
		if (!strcmp(c->what.id, id))
			return c;
	return NULL;
}

static void forget_container(struct gpu_tasks *tasks, struct gpu_container *c)
{
	struct gpu_task *t;
	TAILQ_FOREACH(t, &tasks->ended, link)
		if (t->container == c)
			t->container = NULL;
	TAILQ_REMOVE(&tasks->containers, c, link);
	tasks->container_count--;
	free(c);
}

/* Forgets the first container in the list (least recently used first) that has no live task and is not frozen. */
static void forget_one(struct gpu_tasks *tasks)
{
	struct gpu_container *c;
	TAILQ_FOREACH(c, &tasks->containers, link)
		if (!c->live && !c->is_frozen)
			break;
	if (c)
		forget_container(tasks, c);
}

static struct gpu_container *get_container(struct gpu_tasks *tasks, const struct container *what)
{
	struct gpu_container *c = gpu_tasks_find_id(tasks, what->id);
	if (c) {
		/* While it had no tasks, the container may have been restarted, in another cgroup. */
		if (!c->live && !c->is_frozen)
			c->what = *what;
		TAILQ_REMOVE(&tasks->containers, c, link);
		TAILQ_INSERT_TAIL(&tasks->containers, c, link);
		return c;
	}
	c = calloc(1, sizeof(*c) + tasks->card_count * sizeof(c->card[0]));
	if (!c)
		return NULL;
	c->what = *what;
	gpu_tasks_put_container(tasks, c);
	return c;
}

void gpu_tasks_put_container(struct gpu_tasks *tasks, struct gpu_container *c)
{
	if (tasks->container_count >= GPU_TASKS_CONTAINERS)
		forget_one(tasks);
	TAILQ_INSERT_TAIL(&tasks->containers, c, link);
	tasks->container_count++;
}

static bool is_called(const struct gpu_container *c, const char *text)
{
	char whole[sizeof(c->name.namespace) + sizeof(c->name.pod) + sizeof(c->name.name)];
	const char *in_pod = whole + strlen(c->name.namespace) + 1;
	if (!c->has_name || !c->name.name[0])
		return false;
	if (!strcmp(c->name.name, text))
		return true;
	snprintf(whole, sizeof(whole), "%s/%s/%s", c->name.namespace, c->name.pod, c->name.name);
	return c->name.pod[0] && (!strcmp(whole, text) || !strcmp(in_pod, text));
}

size_t gpu_tasks_find_containers(struct gpu_tasks *tasks, const char *text,
				 struct gpu_container **ret, size_t max)
{
	struct gpu_container *c;
	size_t n = strlen(text), count = 0;
	TAILQ_FOREACH(c, &tasks->containers, link) {
		if (!c->live && !c->is_frozen)
			continue;
		if (!strcmp(c->what.id, text)) {
			ret[0] = c;
			return 1;
		}
		if (!(n >= 4 && !strncmp(c->what.id, text, n)) && !is_called(c, text))
			continue;
		if (count < max)
			ret[count] = c;
		count++;
	}
	return count;
}

static char *read_proc(int pid, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return procfs_read_all(path);
}

void gpu_tasks_put_ended(struct gpu_tasks *tasks, struct gpu_task *t)
{
	t->tasks = tasks;
	TAILQ_INSERT_TAIL(&tasks->ended, t, link);
	if (++tasks->ended_count > GPU_TASKS_HISTORY) {
		struct gpu_task *oldest = TAILQ_FIRST(&tasks->ended);
		TAILQ_REMOVE(&tasks->ended, oldest, link);
		tasks->ended_count--;
		free(oldest);
	}
}

static void end_task(struct gpu_task *t)
{
	struct gpu_tasks *tasks = t->tasks;
	t->ended_ns = clock_now_ns();
	t->source = loop_remove(t->source);
	close_fd(&t->pidfd);
	for (unsigned i = 0; i < tasks->card_count; i++) {
		if (t->container && t->container->card[i].held_bytes >= t->card[i].held_bytes)
			t->container->card[i].held_bytes -= t->card[i].held_bytes;
		t->card[i].held_bytes = 0;
		t->card[i].is_present = false;
	}
	TAILQ_REMOVE(&tasks->live, t, link);
	tasks->live_count--;
	if (t->container)
		t->container->live--;
	if (tasks->events.ended)
		tasks->events.ended(tasks->events.data, t);
	gpu_tasks_put_ended(tasks, t);
}

static void process_ended(void *data, uint32_t events)
{
	end_task(data);
}

struct gpu_task *gpu_tasks_find(struct gpu_tasks *tasks, int pid)
{
	struct gpu_task *t;
	TAILQ_FOREACH(t, &tasks->live, link)
		if (t->pid == pid)
			return t;
	return NULL;
}

static void note_names(struct gpu_task *t)
{
	cleanup_free char *name = read_proc(t->pid, "comm");
	cleanup_free char *cgroups = read_proc(t->pid, "cgroup");
	struct container what;
	if (name)
		snprintf(t->name, sizeof(t->name), "%.*s", (int)strcspn(name, "\n"), name);
	text_clean(t->name);
	if (!cgroups || !container_from_cgroups(cgroups, &what))
		return;
	strcpy(t->container_id, what.id);
	t->container = get_container(t->tasks, &what);
	if (t->container && t->container->live++ == 0) {
		t->container->is_name_current = false;
		t->container->name_failures = 0;
		t->container->name_retry_ns = 0;
	}
}

static int watch_end(struct gpu_task *t)
{
	int r = procfs_open_process(t->pid, t->start_time, &t->pidfd);
	return r < 0 ? r : loop_add(t->tasks->loop, t->pidfd, EPOLLIN, process_ended, t, &t->source);
}

int gpu_tasks_add(struct gpu_tasks *tasks, int pid, struct gpu_task **ret, bool *ret_is_new)
{
	uint64_t start_time;
	struct gpu_task *t = gpu_tasks_find(tasks, pid);
	int r = procfs_start_time(pid, &start_time);
	if (r < 0)
		return r;
	*ret_is_new = !t || t->start_time != start_time;
	if (!*ret_is_new) {
		*ret = t;
		return 0;
	}
	if (tasks->live_count >= GPU_TASKS_LIVE_MAX)
		return -ENOSPC;
	t = calloc(1, sizeof(*t) + tasks->card_count * sizeof(t->card[0]));
	if (!t)
		return -ENOMEM;
	t->tasks = tasks;
	t->pid = pid;
	t->start_time = start_time;
	t->pidfd = -1;
	t->begun_ns = clock_now_ns();
	t->begun_s = (double)clock_read_ns(CLOCK_REALTIME) / 1e9;
	r = watch_end(t);
	if (r < 0) {
		close_fd(&t->pidfd);
		free(t);
		return r;
	}
	note_names(t);
	TAILQ_INSERT_TAIL(&tasks->live, t, link);
	tasks->live_count++;
	tasks->begun++;
	*ret = t;
	return 0;
}

void gpu_task_use(struct gpu_task *t, unsigned card, uint64_t used_ns)
{
	t->card[card].used_ns += used_ns;
	if (t->container)
		t->container->card[card].used_ns += used_ns;
}

int gpu_tasks_new(struct loop *loop, unsigned card_count, struct gpu_tasks_events events,
		  struct gpu_tasks **ret, struct error *err)
{
	struct gpu_tasks *tasks = calloc(1, sizeof(*tasks));
	if (!tasks)
		return error_set_errno(err, ENOMEM, "GPU tasks");
	tasks->loop = loop;
	tasks->card_count = card_count;
	tasks->events = events;
	TAILQ_INIT(&tasks->live);
	TAILQ_INIT(&tasks->ended);
	TAILQ_INIT(&tasks->containers);
	*ret = tasks;
	return 0;
}

struct gpu_tasks *gpu_tasks_free(struct gpu_tasks *tasks)
{
	struct gpu_task *t;
	struct gpu_container *c;
	if (!tasks)
		return NULL;
	tasks->events.ended = NULL;
	while ((t = TAILQ_FIRST(&tasks->live)))
		end_task(t);
	while ((t = TAILQ_FIRST(&tasks->ended))) {
		TAILQ_REMOVE(&tasks->ended, t, link);
		free(t);
	}
	while ((c = TAILQ_FIRST(&tasks->containers))) {
		TAILQ_REMOVE(&tasks->containers, c, link);
		free(c);
	}
	free(tasks);
	return NULL;
}
