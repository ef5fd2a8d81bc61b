/* What gpu_watch.c, gpu_watch_use.c and gpu_watch_json.c share. */
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
	struct openings *openings;  /* NULL: polling alone */
	struct engine_names *names; /* NULL: no engine is asked */
	struct loop_source *timer;
	uint64_t every_ns; /* of the timer */
	bool has_read;     /* once: whoever the first reading shows was there before this daemon */
	bool said_many;
	bool foreign; /* there are tasks that no tenant has, or may be */
};

/* Counts what tasks and containers used until this census. */
void gpu_watch_count(struct gpu_watch *watch, const struct census_card *cards);

/*
 * gpu_watch_cards.c: the cards (bits) that a process could open, by their device files, and of these those that its
 * CUDA_VISIBLE_DEVICES named when it was started.
 */
uint64_t gpu_watch_cards(const struct gpu_watch *watch, int pid);

/* gpu_watch_names.c: who is asked by the settings; and asks for what is not known yet. */
int gpu_watch_start_names(struct gpu_watch *watch, struct error *err);
void gpu_watch_ask_names(struct gpu_watch *watch);
