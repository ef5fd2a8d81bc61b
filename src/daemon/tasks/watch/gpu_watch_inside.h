/* Shared by the files gpu_watch*.c. */
#pragma once

#include "daemon/containers/engine/engine_names.h"
#include "daemon/state/node/node.h"
#include "daemon/tasks/freezer/freezer.h"
#include "daemon/tasks/freezer/gpu_tasks.h"
#include "daemon/tasks/watch/open_events.h"

struct gpu_watch {
	struct node *node;
	struct gpu_tasks *tasks;
	struct freezer *freezer;
	struct open_events *open_events; /* NULL: polling only */
	struct engine_names *names;      /* NULL: no engine is asked */
	struct loop_source *timer;
	uint64_t every_ns; /* interval of `timer` */
	/* the first census was read; tasks that were found before it are older than this daemon */
	bool has_read;
	bool is_full_logged, is_failure_logged;
	bool foreign; /* some task may belong to no tenant */
};

/* Returns true if it is certain that only containers under the freezer's control hold memory on the card. */
bool gpu_watch_is_governed(const struct gpu_watch *watch, const struct census_card *seen);

/* Adds the memory and GPU time that tasks and containers used since the last census. */
void gpu_watch_count(struct gpu_watch *watch, const struct census_card *cards);

/* Returns the cards (bit mask) that a process can open and that its initial CUDA_VISIBLE_DEVICES names. */
uint64_t gpu_watch_cards(const struct gpu_watch *watch, int pid);

/* Connect to the settings' container engines, and ask them for unknown names. */
int gpu_watch_start_names(struct gpu_watch *watch, struct error *err);
void gpu_watch_request_names(struct gpu_watch *watch);
