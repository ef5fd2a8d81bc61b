/*
 * Watches all GPU work of this machine, with or without allot's library. A task is a process that uses a GPU. It is noticed
 * when it opens the device node (open_events.h), or at the latest when the driver lists it (a census, census.h). Counts each
 * task's memory and GPU time, and informs the freezer. A tenant's GPU time is taken from its leases. Other tasks' GPU time is
 * taken from the driver's samples or, without samples, from presence on the driver's list.
 *
 * If openings cannot be watched (logged once), the driver's list is read every census_interval. A private daemon watches only
 * with freezer = on. Main thread only.
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

/* Call after cards, census and tenants are ready. Takes over node->records. *ret stays unset if the watch is off. */
int gpu_watch_start(struct node *node, struct gpu_watch **ret, struct error *err);
/* Thaws all containers and frees the watch. NULL is allowed; returns NULL. */
struct gpu_watch *gpu_watch_stop(struct gpu_watch *watch);

/* Call after each census with the readings of all cards. `watch` may be NULL. */
void gpu_watch_census(struct gpu_watch *watch, const struct census_card *cards);

/* Memory that containers that were just allowed to start may still allocate. It counts as taken. `watch` may be NULL. */
uint64_t gpu_watch_starting_bytes(const struct gpu_watch *watch, unsigned card);

/*
 * Pauses or resumes a container by a user's request; `name` is its name or a prefix of its id. Pausing freezes it or, with
 * swap_out, moves it off the GPUs by checkpoint. *ret_moving: a move is in progress; call again with `poll` for the result.
 * Returns -EINVAL if several containers match, -ENOENT if none does or `watch` is NULL.
 */
int gpu_watch_set_paused(struct gpu_watch *watch, const char *name, bool paused, bool swap_out,
			 bool poll, bool *ret_moving, struct error *err);

/* Freezes the process's container until gpu_watch_release(). Returns -ENOENT outside containers, or another -errno. */
int gpu_watch_hold(struct gpu_watch *watch, int pid, char ret_id[CONTAINER_ID_MAX],
		   struct error *err);
/* Returns true if gpu_watch_hold() still keeps the container frozen. A user may have resumed it. */
bool gpu_watch_is_held(const struct gpu_watch *watch, const char *id);
/* The container stays frozen if a user has paused it, too. If it cannot be thawed, returns -errno, and allotd tries again. */
int gpu_watch_release(struct gpu_watch *watch, const char *id, struct error *err);
/* Returns true if the process's container is off its GPUs or moving. `watch` may be NULL. */
bool gpu_watch_is_away(const struct gpu_watch *watch, int pid);

/* Return the recorded tasks and containers, and the freezer, for reading only. */
const struct gpu_tasks *gpu_watch_tasks(const struct gpu_watch *watch);
const struct freezer *gpu_watch_freezer(const struct gpu_watch *watch);

/* NULL if there is no container or no name, or if `watch` is NULL. Valid until the next iteration of the event loop. */
const struct engine_name *gpu_watch_tenant_name(const struct gpu_watch *watch,
						const struct tenant *tenant);

/* Call when a tenant was renamed. `watch` may be NULL. */
void gpu_watch_rename_tenant(struct gpu_watch *watch, const char *from, const char *to);

/* Adds "tasks" and "containers" to the state file (use_state.h), unless `watch` is NULL. */
void gpu_watch_records(struct gpu_watch *watch, json_t *json);

/* Returns the containers with tasks of the tenant, as in `allot ps --json`. `watch` may be NULL. */
json_t *gpu_watch_tenant_containers(const struct gpu_watch *watch, const char *tenant);

/* Adds "version", "watch", "freezer", "tasks" and "containers" to the reply (docs/reference/protocol.md). */
void gpu_watch_to_json(struct gpu_watch *watch, json_t *reply);
