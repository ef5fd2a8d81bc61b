/*
 * The freezer: carries out what freeze_policy.h decides about containers, and what is asked for by hand.
 * Whatever it has frozen is in the watchdog's list and in the state file before it is, and thawed when
 * this process ends. Main thread only.
 *
 * Never frozen by it: a container with the library in it (it waits in the allocation instead), one that
 * holds this daemon, what is in no container, and anything while MPS serves processes of
 * several containers: a client that stands still would hold up the others.
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/tasks/freezer/gpu_tasks.h"

struct freezer;

/* `run_dir` and `config` must outlive it. Thaws what a freezer before it left behind. */
int freezer_new(struct loop *loop, const struct config *config, const char *run_dir,
		struct gpu_tasks *tasks, struct freezer **ret, struct error *err);
/* Thaws everything. NULL is fine; returns NULL. */
struct freezer *freezer_free(struct freezer *freezer);

/*
 * A task has begun in a container: it may be frozen when this returns. `cards`: those it may use.
 * `runs`: it was there before this daemon was, and is let be.
 */
void freezer_task_begun(struct freezer *freezer, struct gpu_task *task, uint64_t cards, bool runs);
/* The last task of its container may have ended. */
void freezer_task_ended(struct freezer *freezer, struct gpu_task *task);
/*
 * All cards have been read, in a reading that began at begun_ns, and the containers' held_bytes are up
 * to date: lets go who may.
 */
void freezer_read(struct freezer *freezer, const struct freeze_card *cards, uint64_t begun_ns);
/* What containers that were let go may still take of a card. */
uint64_t freezer_starting_bytes(const struct freezer *freezer, unsigned card);
/* Does something wait for a reading? Then it should be soon. */
bool freezer_wants_reading(const struct freezer *freezer);
/* Does something stand still only until one has been made? Then it should be at once. */
bool freezer_is_asked(const struct freezer *freezer);

/* By hand. -EOPNOTSUPP and others: it can't be frozen, with one line that says why. */
int freezer_pause(struct freezer *freezer, struct gpu_container *container, struct error *err);
int freezer_resume(struct freezer *freezer, struct gpu_container *container, struct error *err);

struct freezer_figures {
	uint64_t freezes, thaws, failures; /* containers, ever; that could not be frozen */
	uint64_t frozen_ns;                /* of all that ever were, until now */
};
struct freezer_figures freezer_figures(const struct freezer *freezer, uint64_t now_ns);

/* "running", "starting", "waiting" (frozen at its start), "paused" (by hand), "ended". */
const char *freezer_state_name(const struct gpu_container *container);
/* How long it has been frozen in sum. */
uint64_t freezer_frozen_ns(const struct gpu_container *container, uint64_t now_ns);
