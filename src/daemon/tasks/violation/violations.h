/*
 * Processes that get round the library. After each census whoever the driver lists and no tenant has
 * registered is looked at, and who holds more than its ledger is told of by census_compare.c; what follows is
 * violation_policy.h's to say, and done here: counted and logged once a process, and by `on_violation` of the
 * settings or the tenant, whichever is stricter, reported, frozen or ended.
 *
 * Frozen is the cgroup of the process's container, where that is the one tenant's, by the freezer; else the process
 * itself is stopped, and again when somebody continues it. This daemon's end lets all of it go on, as does
 * `allot resume`; what is stopped when a daemon is killed, the next one continues (file "stopped").
 *
 * Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/util/json.h"
#include "policy/safety/violation_policy.h"

struct node;
struct census_card;
struct tenant;
struct process;
struct violations;

/* After the node's loop. Continues what a daemon before left stopped. */
int violations_start(struct node *node, struct violations **ret, struct error *err);
/* Lets go on whom it stopped; who is in a frozen container is the freezer's. NULL is fine; returns NULL. */
struct violations *violations_stop(struct violations *violations);

/* Every card as read, when tenants' processes have been compared with it. */
void violations_census(struct violations *violations, const struct census_card *cards);
/* The process holds that, and it or its tenant so much more than its ledger or the quota, as several censuses showed. */
void violations_note_over(struct violations *violations, struct tenant *tenant, int pid,
			  enum violation_reason reason, unsigned card, uint64_t held_bytes,
			  uint64_t beyond_bytes);
/* Is there a process whose case is not decided yet, so that the next census matters? */
bool violations_has_open(const struct node *node);

/*
 * Lets the offenders of the tenant of that name go on, also of one that is gone: no more is done about them.
 * How many; -EPERM where the caller may not: what the daemon's settings wanted, administrators alone let go.
 */
int violations_resume(struct violations *violations, const char *tenant, bool is_admin,
		      struct error *err);

/* Of a tenant: [{"pid","name","reason","sign","action","memory_bytes"}]. */
json_t *violations_of_tenant(const struct violations *violations, const char *tenant);
/* Of a process: {"tenant","reason","action"}, or null. */
json_t *violations_of_process(const struct violations *violations, int pid);

struct violations_figures violations_figures(const struct violations *violations);

/* What is done about this tenant's offenders: its own choice or the setting, whichever is stricter. */
enum on_violation violations_wanted(const struct tenant *tenant);
