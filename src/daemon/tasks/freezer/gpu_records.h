/*
 * GPU tasks and containers between one daemon and the next: what gpu_tasks.h keeps, as JSON, and back.
 * Tasks that ended stay recorded; of those that ran when it was written, who still lives goes on where it
 * was, and who has gone meanwhile has ended. Containers keep what they used, as it faded since, and their
 * names. Memory is not recorded: the driver tells. Main thread only.
 */
#pragma once

#include "daemon/tasks/freezer/gpu_tasks.h"
#include "daemon/util/json.h"

#define GPU_RECORDS_CARDS 64

/* Cards as the file numbers them, and what each of these is now: -1: gone. */
struct gpu_records_cards {
	unsigned old_count;
	int now[GPU_RECORDS_CARDS];
	unsigned count; /* now */
};

/* When the file was written, as seen from now. */
struct gpu_records_when {
	uint64_t passed_ns;
	bool is_same_boot; /* pids of then still mean something */
	uint64_t now_ns;   /* base/clock.h's */
	uint64_t half_life_ns;
};

/* Read and checked, not yet taken over. */
struct gpu_records {
	uint64_t passed_ns; /* since it was written */
	struct gpu_container_list containers;
	struct gpu_task_list ended, running; /* `running`: when it was written */
};

/* Adds "containers" and "tasks". */
void gpu_records_to_json(const struct gpu_tasks *tasks, uint64_t half_life_ns, uint64_t now_ns,
			 json_t *json);
/* All or, with -EINVAL or -ENOMEM, nothing. Absent lists are empty. */
int gpu_records_from_json(const json_t *json, const struct gpu_records_cards *cards,
			  const struct gpu_records_when *when, struct gpu_records **ret,
			  struct error *err);
/* NULL is fine; returns NULL. */
struct gpu_records *gpu_records_free(struct gpu_records *records);

/* Hands containers and ended tasks to an empty registry; `running` is left to gpu_records_take_task(). */
void gpu_records_take(struct gpu_records *records, struct gpu_tasks *tasks);
/*
 * `live`, of the same process as this record of `running`, goes on from what was recorded; NULL: the process
 * is gone, and is recorded as ended. The record is freed or handed over.
 */
void gpu_records_take_task(struct gpu_records *records, struct gpu_task *record,
			   struct gpu_tasks *tasks, struct gpu_task *live);
