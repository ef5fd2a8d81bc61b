/*
 * A container without allot's library cannot be made to wait in its allocations. So while the GPU has too little free memory
 * for the container, the freezer stops all of the container's processes (cgroup freezer). freeze_policy.h decides when; users
 * and violations can keep a container frozen too (enum freezer_hold). Before a cgroup is frozen, the watchdog (watchdog.h) and
 * a file (frozen_list.h) list it, so it is thawed even if this process is killed. Main thread only.
 *
 * The lack of memory never freezes a container with the library, this daemon's container, a container that freeze_only or
 * freeze_never excludes, or a process outside containers. While a process of MPS uses a GPU, no container is frozen, because a
 * stopped MPS client would block the other clients.
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/tasks/freezer/gpu_tasks.h"

struct freezer;

/* Thaws the containers that an earlier daemon left frozen. `run_dir` and `config` must outlive the freezer. */
int freezer_new(struct loop *loop, const struct config *config, const char *run_dir,
		struct gpu_tasks *tasks, struct freezer **ret, struct error *err);
/* Thaws all containers and frees the freezer. NULL is allowed; returns NULL. */
struct freezer *freezer_free(struct freezer *freezer);

/*
 * Call when a task (a process that uses a GPU) has begun in a container, which may be frozen on return. `cards`: bit mask of
 * cards that the task may use. `runs`: the task is older than this daemon, so its container is not frozen.
 */
void freezer_task_begun(struct freezer *freezer, struct gpu_task *task, uint64_t cards, bool runs);
void freezer_task_ended(struct freezer *freezer, struct gpu_task *task);
/* Call after a census that began at begun_ns. Thaws containers that may now run. */
void freezer_read(struct freezer *freezer, const struct freeze_card *cards, uint64_t begun_ns);
/* Returns how many bytes of the card's memory may still be allocated by containers that were just allowed to start. */
uint64_t freezer_starting_bytes(const struct freezer *freezer, unsigned card);
/* Returns true if a census should come soon: a container waits at its start or was just allowed to start. */
bool freezer_needs_census_soon(const struct freezer *freezer);
/* Returns true if a census should come at once: a container is frozen until a census shows whether it may start. */
bool freezer_needs_census_now(const struct freezer *freezer);

/* Reasons to keep a container frozen even if freeze_policy.h would thaw it. Both may apply at once. */
enum freezer_hold {
	FREEZER_PAUSED = 1 << 0,    /* a user has paused it */
	FREEZER_VIOLATION = 1 << 1, /* a process in it bypasses the library */
};
/* Freezes a container. If it cannot be frozen, returns -EOPNOTSUPP or another -errno, with the reason in one line of text. */
int freezer_hold(struct freezer *freezer, struct gpu_container *container, enum freezer_hold why,
		 struct error *err);
/*
 * Ends the hold `why`. Thaws the container unless another hold remains, or the container waits for memory at its start. If it
 * cannot be thawed, returns -errno; freezer_read() then tries again.
 */
int freezer_release(struct freezer *freezer, struct gpu_container *container, enum freezer_hold why,
		    struct error *err);
/*
 * Thaws a container by a user's request: ends all holds, and the container's wait for memory. Returns -EALREADY if the
 * container is not frozen, and otherwise the same as freezer_release().
 */
int freezer_resume(struct freezer *freezer, struct gpu_container *container, struct error *err);

struct freezer_figures {
	/* how often containers were frozen and thawed, and how often freezing failed */
	uint64_t freezes, thaws, failures;
	uint64_t frozen_ns;
};
struct freezer_figures freezer_figures(const struct freezer *freezer, uint64_t now_ns);

/*
 * WAITING: frozen at the start of its GPU work, until there is memory. STARTING: was just allowed to start its GPU work.
 * PAUSED: frozen by a hold (enum freezer_hold), or still frozen because a thaw failed.
 */
enum freezer_state {
	FREEZER_STATE_RUNNING,
	FREEZER_STATE_STARTING,
	FREEZER_STATE_WAITING,
	FREEZER_STATE_PAUSED,
	FREEZER_STATE_ENDED,
	FREEZER_STATES
};
enum freezer_state freezer_state(const struct gpu_container *container);
/* Returns "running" and so on. freezer_state_name(): of the container's present state. */
const char *freezer_state_text(enum freezer_state state);
const char *freezer_state_name(const struct gpu_container *container);
uint64_t freezer_frozen_ns(const struct gpu_container *container, uint64_t now_ns);
