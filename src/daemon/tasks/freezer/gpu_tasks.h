/*
 * A GPU task is a process that uses a GPU, with its begin, end and use. Records tasks and their containers, as in Algorithm 1
 * of Gil et al. (docs/reference/seeds.md). gpu_watch.c reports tasks and their use.
 *
 *     container --- task, task, ...     live tasks are in one list, ended tasks in another,
 *     (none)    --- task, ...           which keeps the last GPU_TASKS_HISTORY
 *
 * A container is kept after its last task, because its use (fade.h) is still needed, unless there are too many
 * containers. Main thread only.
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

#define GPU_TASKS_HISTORY 256   /* ended tasks that are kept: the last ones */
#define GPU_TASKS_LIVE_MAX 4096 /* most live tasks; limited because each uses a file descriptor */
/* most containers that are kept; exceeded only while all have live tasks or are frozen */
#define GPU_TASKS_CONTAINERS 1024
#define GPU_TASK_NAME_MAX 16
#define GPU_TASK_TENANT_MAX 64

struct gpu_tasks;

/* A task's or container's use of one card. */
struct gpu_task_card {
	/* the driver listed the task on the card at the last census */
	bool is_present;
	uint64_t held_bytes, most_bytes;
	uint64_t used_ns;
	/*
	 * Tasks only. The driver samples the GPU use of each process. The next three describe the last sample that was counted:
	 * when it ended (on the driver's clock), the task's share of the card in it, and when it was read (0: none yet).
	 */
	uint64_t sample_us;
	double sample_share;
	uint64_t sampled_ns;
	/* tasks only: when gpu_watch_count() last counted the task's use; 0: never */
	uint64_t seen_ns;
	/* tasks only: how long the container had been frozen when the last sample was counted */
	uint64_t frozen_ns;
};

struct gpu_container {
	TAILQ_ENTRY(gpu_container) link;
	struct container what;
	unsigned live;
	bool has_library;  /* a tenant's process is in it */
	struct fade fade;  /* decaying use of all cards together */
	uint64_t faded_ns; /* sum of the cards' used_ns that was already added to `fade` */
	/* frozen_ns: total time of earlier freezes; frozen_since_ns: when the present freeze began, 0: not frozen */
	uint64_t frozen_ns, frozen_since_ns;
	/* the following four are used by freezer.c */
	struct freeze_item item;
	unsigned holds;       /* bits of enum freezer_hold; item.by_hand is true if any is set */
	struct cgroup cgroup; /* dir "": not looked up, or unavailable */
	bool is_frozen;
	/* the engine's name for the container (gpu_watch_names.c); is_name_requested: the engine's answer is awaited */
	struct engine_name name;
	bool has_name, is_name_requested;
	/* the name was reported after the container last began to have live tasks; an older name may be out of date */
	bool is_name_current;
	unsigned name_failures;
	uint64_t name_retry_ns; /* the engine is not asked again before this time */
	/* move off the GPUs and back (container_swap.h); NULL: never requested */
	struct container_swap *swap;
	struct gpu_task_card card[]; /* by card index */
};

struct gpu_task {
	TAILQ_ENTRY(gpu_task) link;
	struct gpu_tasks *tasks;
	int pid;
	uint64_t start_time; /* with the pid, identifies the process */
	char name[GPU_TASK_NAME_MAX];
	char tenant[GPU_TASK_TENANT_MAX]; /* "": none */
	struct gpu_container *container;  /* NULL: none */
	char container_id[CONTAINER_ID_MAX];
	uint64_t begun_ns, ended_ns; /* ended_ns is 0 while the task lives */
	double begun_s;              /* seconds since 1970 */
	int pidfd;
	struct loop_source *source;
	struct gpu_task_card card[];
};

TAILQ_HEAD(gpu_task_list, gpu_task);
TAILQ_HEAD(gpu_container_list, gpu_container);

struct gpu_tasks_events {
	/* called when a task has ended; task->container is still set, but no longer counts the task as live */
	void (*ended)(void *data, struct gpu_task *task);
	void *data;
};

struct gpu_tasks {
	struct loop *loop;
	unsigned card_count;
	struct gpu_tasks_events events;
	struct gpu_task_list live, ended;
	struct gpu_container_list containers;
	unsigned live_count, ended_count, container_count;
	uint64_t begun;
};

int gpu_tasks_new(struct loop *loop, unsigned card_count, struct gpu_tasks_events events,
		  struct gpu_tasks **ret, struct error *err);
/* NULL is allowed; returns NULL. */
struct gpu_tasks *gpu_tasks_free(struct gpu_tasks *tasks);

/* Finds or makes (*ret_is_new) a process's task. Returns -ESRCH if the process is gone, -ENOSPC above GPU_TASKS_LIVE_MAX. */
int gpu_tasks_add(struct gpu_tasks *tasks, int pid, struct gpu_task **ret, bool *ret_is_new);
/* NULL if the process has no live task */
struct gpu_task *gpu_tasks_find(struct gpu_tasks *tasks, int pid);

/* `id`: the whole id. NULL if there is none. */
struct gpu_container *gpu_tasks_find_id(struct gpu_tasks *tasks, const char *id);
/*
 * Finds the containers that have GPU work or are frozen, by `text`: an id, a prefix of at least four characters, a name,
 * "pod/name" or "namespace/pod/name". Returns their number; writes at most `max`. A whole id matches only its own container.
 */
size_t gpu_tasks_find_containers(struct gpu_tasks *tasks, const char *text,
				 struct gpu_container **ret, size_t max);

/*
 * Add a container or an ended task of the previous daemon (gpu_records.h); `tasks` then owns it. The container must have no
 * tasks, and `tasks` must not have its id yet. The task must have ended later than every task in tasks->ended.
 */
void gpu_tasks_put_container(struct gpu_tasks *tasks, struct gpu_container *container);
void gpu_tasks_put_ended(struct gpu_tasks *tasks, struct gpu_task *task);

void gpu_task_use(struct gpu_task *task, unsigned card, uint64_t used_ns);
