/*
 * GPU tasks: the processes that use a GPU, each with its beginning, its end and what it used, and the
 * containers that they are in. The record of Algorithm 1 of Gil et al. (docs/reference/seeds.md);
 * gpu_watch.c tells of tasks and their use.
 *
 *     container --- task, task, ...     live ones in one list, ended ones in another: the last
 *     (none)    --- task, ...           GPU_TASKS_HISTORY
 *
 * A container stays known after its last task for the sake of its use (fade.h), as long as there are not
 * too many. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "daemon/containers/engine/engine_reply.h"
#include "daemon/util/cgroups.h"
#include "daemon/util/container.h"
#include "policy/memory/fade.h"
#include "policy/safety/freeze_policy.h"
#include "net/loop.h"

#define GPU_TASKS_HISTORY 256     /* ended tasks kept */
#define GPU_TASKS_LIVE_MAX 4096   /* each takes a descriptor: nobody may use them all up */
#define GPU_TASKS_CONTAINERS 1024 /* containers kept; those with live tasks beyond that too */
#define GPU_TASK_NAME_MAX 16
#define GPU_TASK_TENANT_MAX 64

struct gpu_tasks;

/* Of a task or a container, on one card. */
struct gpu_task_card {
	bool is_present; /* holds memory there, as of the last census */
	uint64_t held_bytes, most_bytes;
	uint64_t used_ns;
	uint64_t sample_us; /* task: end of the last sample that was counted, by the driver's clock */
	double sample_share; /* task: of the card, in that sample ... */
	uint64_t sampled_ns; /* ... which was read then; 0: there was none */
	uint64_t seen_ns;    /* task: the last census */
	uint64_t frozen_ns;  /* task: its container's, in sum, when its time was last counted */
};

struct gpu_container {
	TAILQ_ENTRY(gpu_container) link;
	struct container what;
	unsigned live;                       /* tasks */
	bool has_library;                    /* a tenant's process lives in it */
	struct fade fade;                    /* over all cards */
	uint64_t faded_ns;                   /* of its use, what is in that */
	uint64_t frozen_ns, frozen_since_ns; /* in sum, before; 0: is not frozen */
	/* The freezer's (freezer.c). */
	struct freeze_item item;
	struct cgroup cgroup; /* dir "": not looked for, or not to be had */
	bool is_frozen;
	/* By its engine, where that tells (gpu_watch_names.c). */
	struct engine_name name;
	bool has_name, is_asked;
	bool is_told; /* since its first task began: it may have been renamed before */
	unsigned name_failures;
	uint64_t name_again_ns;      /* not asked before that */
	struct container_swap *swap; /* NULL: never asked for; see container_swap.h */
	struct gpu_task_card card[]; /* by index of the card */
};

struct gpu_task {
	TAILQ_ENTRY(gpu_task) link;
	struct gpu_tasks *tasks;
	int pid;
	uint64_t start_time; /* with the pid, names it for good */
	char name[GPU_TASK_NAME_MAX];
	char tenant[GPU_TASK_TENANT_MAX]; /* "": none */
	struct gpu_container *container;  /* NULL: in none */
	char container_id[CONTAINER_ID_MAX];
	uint64_t begun_ns, ended_ns; /* 0: lives */
	double begun_s;              /* since 1970 */
	int pidfd;
	struct loop_source *source;
	struct gpu_task_card card[];
};

TAILQ_HEAD(gpu_task_list, gpu_task);
TAILQ_HEAD(gpu_container_list, gpu_container);

struct gpu_tasks_events {
	void (*ended)(void *data,
		      struct gpu_task *task); /* called while its container is still its */
	void *data;
};

struct gpu_tasks {
	struct loop *loop;
	unsigned card_count;
	struct gpu_tasks_events events;
	struct gpu_task_list live, ended;
	struct gpu_container_list containers;
	unsigned live_count, ended_count, container_count;
	uint64_t begun; /* tasks, ever */
};

int gpu_tasks_new(struct loop *loop, unsigned card_count, struct gpu_tasks_events events,
		  struct gpu_tasks **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct gpu_tasks *gpu_tasks_free(struct gpu_tasks *tasks);

/*
 * The task of that process, made where it is new (*ret_is_new). -ESRCH: it is gone; -ENOSPC: there are
 * GPU_TASKS_LIVE_MAX.
 */
int gpu_tasks_add(struct gpu_tasks *tasks, int pid, struct gpu_task **ret, bool *ret_is_new);
/* The live task of that pid; NULL: none. */
struct gpu_task *gpu_tasks_find(struct gpu_tasks *tasks, int pid);

/* The container of exactly that id; NULL: it is not known. */
struct gpu_container *gpu_tasks_find_id(struct gpu_tasks *tasks, const char *id);
/*
 * Containers that have GPU work or are frozen, and are meant by `text`: the whole id, the id's beginning
 * (four characters at least), the name, "pod/name" or "namespace/pod/name". How many, of which `max` are in
 * ret; a whole id means that one alone.
 */
size_t gpu_tasks_find_containers(struct gpu_tasks *tasks, const char *text,
				 struct gpu_container **ret, size_t max);

/*
 * Of a daemon before this one (gpu_records.h), and from then on the registry's: a container without tasks, of
 * an id that it does not have; a task that has ended, later than those that it has.
 */
void gpu_tasks_put_container(struct gpu_tasks *tasks, struct gpu_container *container);
void gpu_tasks_put_ended(struct gpu_tasks *tasks, struct gpu_task *task);

/* Counts GPU time of a task on a card, and of its container. */
void gpu_task_use(struct gpu_task *task, unsigned card, uint64_t used_ns);
