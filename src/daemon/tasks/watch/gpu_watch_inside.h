/* Shared by the files gpu_watch*.c. */
#pragma once

#include "daemon/containers/engine/engine_names.h"
#include "daemon/state/node/node.h"
#include "daemon/tasks/freezer/freezer.h"
#include "daemon/tasks/freezer/gpu_tasks.h"
#include "daemon/tasks/watch/openings.h"

struct gpu_watch {
	struct node *node;
	struct gpu_tasks *tasks;
	struct freezer *freezer;
	struct openings *openings;  /* NULL: polling only */
	struct engine_names *names; /* NULL: no engine is asked */
	struct loop_source *timer;
	uint64_t every_ns; /* interval of the timer */
	/* a census was read; until then, the tasks found are older than this daemon */
	bool has_read;
	bool said_many;
	bool foreign; /* there are, or may be, tasks that belong to no tenant */
};

/*
 * Whether only containers that the freezer controls hold memory on the card. If that is not certain,
 * returns false.
 */
bool gpu_watch_is_governed(const struct gpu_watch *watch, const struct census_card *seen);

/* Adds to each task and container what it used up to this census. */
void gpu_watch_count(struct gpu_watch *watch, const struct census_card *cards);

/*
 * Returns the cards (bit mask) that a process may use: those whose device files it can open and
 * that its CUDA_VISIBLE_DEVICES, as of its start, names. In gpu_watch_cards.c.
 */
uint64_t gpu_watch_cards(const struct gpu_watch *watch, int pid);

/*
 * gpu_watch_start_names() connects to the container engines of the settings. gpu_watch_ask_names()
 * asks them for the names that are not known yet. In gpu_watch_names.c.
 */
int gpu_watch_start_names(struct gpu_watch *watch, struct error *err);
void gpu_watch_ask_names(struct gpu_watch *watch);
