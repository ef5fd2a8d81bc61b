/*
 * Hands GPU tasks (processes that use a GPU) and their containers (gpu_tasks.h) to the next daemon, as JSON. A running task
 * goes on if its process still lives; otherwise it counts as ended. Containers keep their names and their use, which also
 * decays while no daemon runs. Memory held at present is not recorded, since the driver reports it. Main thread
 * only.
 */
#pragma once

#include "daemon/tasks/freezer/gpu_tasks.h"
#include "daemon/util/json.h"

#define GPU_RECORDS_CARDS 64

/* Maps each card index in the previous daemon's file to the present index; -1 if the card is gone. */
struct gpu_records_cards {
	unsigned old_count;
	int now[GPU_RECORDS_CARDS];
	unsigned count; /* number of present cards */
};

/* Relates the times and pids in the file to the present. */
struct gpu_records_when {
	uint64_t passed_ns;
	bool is_same_boot; /* the file's pids are still valid */
	uint64_t now_ns;   /* the present time (base/clock.h) */
	uint64_t half_life_ns;
};

/* Records that were read and checked, but are not in the registry (struct gpu_tasks) yet. */
struct gpu_records {
	uint64_t passed_ns; /* since the file was written */
	struct gpu_container_list containers;
	/* `running`: tasks that ran when the file was written */
	struct gpu_task_list ended, running;
};

/* Adds the members "containers" and "tasks" to `json`. */
void gpu_records_to_json(const struct gpu_tasks *tasks, uint64_t half_life_ns, uint64_t now_ns,
			 json_t *json);
/* Reads all records or, on -EINVAL or -ENOMEM, none. A missing list is empty. */
int gpu_records_from_json(const json_t *json, const struct gpu_records_cards *cards,
			  const struct gpu_records_when *when, struct gpu_records **ret,
			  struct error *err);
/* NULL is allowed; returns NULL. */
struct gpu_records *gpu_records_free(struct gpu_records *records);

/*
 * Moves containers and ended tasks to an empty registry. The caller passes each of records->running to
 * gpu_records_take_task().
 */
void gpu_records_take(struct gpu_records *records, struct gpu_tasks *tasks);
/*
 * Takes a record out of records->running, and frees it or moves it to `tasks`. `live` is the new task of the record's process,
 * and takes over the record's figures. If the process is gone, `live` is NULL, and the record becomes an ended task.
 */
void gpu_records_take_task(struct gpu_records *records, struct gpu_task *record,
			   struct gpu_tasks *tasks, struct gpu_task *live);
