/*
 * Watches all GPU work of this machine, including work without the library. It notices a task when
 * the task opens the device node (openings.h), or at the latest when the driver lists it
 * (census.h). It counts each task's GPU time and memory, and informs the freezer. The GPU time of a
 * tenant's task comes from its leases; that of any other task, from the driver's samples or,
 * without samples, from its presence on the driver's list.
 *
 * If openings cannot be watched, the driver's list is read every census_interval, and a log line
 * says so once. A private daemon watches only with freezer = on. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/util/container.h"
#include "daemon/util/json.h"

struct node;
struct census_card;
struct gpu_watch;
struct gpu_container;
struct gpu_tasks;
struct freezer;
struct engine_name;
struct tenant;

/*
 * Starts to watch. Call after the node's cards, census and tenants are ready. Takes ownership of
 * node->records. *ret is NULL if the settings disable the watch.
 */
int gpu_watch_start(struct node *node, struct gpu_watch **ret, struct error *err);
/* Thaws all containers and frees the watch. NULL is allowed; returns NULL. */
struct gpu_watch *gpu_watch_stop(struct gpu_watch *watch);

/* Call after each census with the readings of all cards. `watch` may be NULL. */
void gpu_watch_census(struct gpu_watch *watch, const struct census_card *cards);

/*
 * Returns how much memory of a card containers without the library may still allocate after they
 * were thawed; it counts as taken. `watch` may be NULL.
 */
uint64_t gpu_watch_starting_bytes(const struct gpu_watch *watch, unsigned card);

/*
 * Pauses or resumes a container by request. `name` is its name or a prefix of its id. Pausing
 * freezes it or, with swap_out, takes it off its GPUs by the driver's checkpoint call. *ret_moving:
 * a move has begun; ask for its result with `poll`. Returns -EINVAL if several containers match,
 * -ENOENT if none matches or `watch` is NULL.
 */
int gpu_watch_set_paused(struct gpu_watch *watch, const char *name, bool paused, bool swap_out,
			 bool poll, bool *ret_moving, struct error *err);

/*
 * Freezes the container of the process's task, as a user's request would, and returns the
 * container's id. Returns -ENOENT if the task is in no container, another -errno if the container
 * cannot be frozen.
 */
int gpu_watch_hold(struct gpu_watch *watch, int pid, char ret_id[CONTAINER_ID_MAX],
		   struct error *err);
/* Whether gpu_watch_hold() still keeps the container of that id frozen. A user may have resumed it. */
bool gpu_watch_is_held(const struct gpu_watch *watch, const char *id);
/* Undoes gpu_watch_hold(). The container stays frozen if a user has paused it, too. */
void gpu_watch_let_go(struct gpu_watch *watch, const char *id);
/* Whether the process is in a container that is off its GPUs or moving. `watch` may be NULL. */
bool gpu_watch_is_away(const struct gpu_watch *watch, int pid);

/* Return the registry of known tasks and containers, and the freezer, for reading only. */
const struct gpu_tasks *gpu_watch_tasks(const struct gpu_watch *watch);
const struct freezer *gpu_watch_freezer(const struct gpu_watch *watch);

/*
 * Returns the engine's name for the container of the tenant's processes. NULL if they are in none,
 * or the name is unknown, or `watch` is NULL. Valid until control returns to the event loop.
 */
const struct engine_name *gpu_watch_tenant_name(const struct gpu_watch *watch,
						const struct tenant *tenant);

/* Call when a tenant was renamed. `watch` may be NULL. */
void gpu_watch_rename_tenant(struct gpu_watch *watch, const char *from, const char *to);

/*
 * Adds "tasks" and "containers" to the state file (use_state.h). Adds nothing if `watch` is NULL.
 */
void gpu_watch_records(struct gpu_watch *watch, json_t *json);

/*
 * Returns the containers with tasks of that tenant, as in `allot ps --json`. `watch` may be NULL.
 */
json_t *gpu_watch_tenant_containers(const struct gpu_watch *watch, const char *tenant);

/* Adds "tasks", "containers" and "watch" to the reply (docs/reference/protocol.md). */
void gpu_watch_to_json(struct gpu_watch *watch, json_t *reply);
