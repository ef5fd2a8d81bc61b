/*
 * All GPU work of this machine, also that without the library: notices a task when it opens the device
 * node (openings.h), or at the latest when the driver lists it (census.h), counts what it uses, and tells
 * the freezer. A task that is a tenant's is charged by its leases; another by the driver's samples, or by
 * its presence.
 *
 * Where openings can't be watched, the driver's list is read every census_interval, which is said once.
 * A private daemon watches only with freezer = on. Main thread only.
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
 * After the node's cards, census and tenants; takes node->records over. *ret is NULL where settings say that
 * nothing is watched.
 */
int gpu_watch_start(struct node *node, struct gpu_watch **ret, struct error *err);
/* Thaws everything. NULL is fine; returns NULL. */
struct gpu_watch *gpu_watch_stop(struct gpu_watch *watch);

/* Every card as read; NULL is fine. */
void gpu_watch_census(struct gpu_watch *watch, const struct census_card *cards);

/*
 * What containers without the library that have just been let go may still take of a card: as good as
 * taken. NULL is fine.
 */
uint64_t gpu_watch_starting_bytes(const struct gpu_watch *watch, unsigned card);

/*
 * By hand, a container by its name or the beginning of its id: frozen, or with swap_out taken off its GPUs by the
 * driver's checkpoint call; or let go on. *ret_moving: that has begun, and what comes of it is asked for with
 * `poll`. -EINVAL: several are meant; -ENOENT: nothing of that name is known, or `watch` is NULL.
 */
int gpu_watch_set_paused(struct gpu_watch *watch, const char *name, bool paused, bool swap_out,
			 bool poll, bool *ret_moving, struct error *err);

/*
 * Freezes the container that the process's task is in, as by hand, and tells which. -ENOENT: it is in none;
 * others: it can't be frozen.
 */
int gpu_watch_hold(struct gpu_watch *watch, int pid, char ret_id[CONTAINER_ID_MAX],
		   struct error *err);
/* Does the container of that id stand still, as by hand? */
bool gpu_watch_is_held(const struct gpu_watch *watch, const char *id);
void gpu_watch_let_go(struct gpu_watch *watch, const char *id);
/* Is the process in a container that is off its GPUs, or on its way? NULL is fine. */
bool gpu_watch_is_away(const struct gpu_watch *watch, int pid);

/* The tasks and containers that are known, and the freezer; for whoever only looks at them. */
const struct gpu_tasks *gpu_watch_tasks(const struct gpu_watch *watch);
const struct freezer *gpu_watch_freezer(const struct gpu_watch *watch);

/*
 * What the engine calls the container that the tenant's processes live in; NULL: in none, or not known. The
 * watch's, until it next turns. `watch` NULL is fine.
 */
const struct engine_name *gpu_watch_tenant_name(const struct gpu_watch *watch,
						const struct tenant *tenant);

/* The tenant is called otherwise now. NULL is fine. */
void gpu_watch_rename_tenant(struct gpu_watch *watch, const char *from, const char *to);

/* Adds "tasks" and "containers" for the state file (use_state.h). NULL is fine: adds nothing. */
void gpu_watch_records(struct gpu_watch *watch, json_t *json);

/* The containers that the tenant of that name has tasks in, as `allot ps --json` tells them. NULL is fine. */
json_t *gpu_watch_tenant_containers(const struct gpu_watch *watch, const char *tenant);

/* Adds "tasks", "containers", "watch" to the reply (docs/reference/protocol.md). */
void gpu_watch_to_json(struct gpu_watch *watch, json_t *reply);
