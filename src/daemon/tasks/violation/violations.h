/*
 * Finds processes that bypass the library, and acts on them. After each census, it checks the
 * processes in the driver's list that no tenant has registered. census_compare.c reports processes
 * that hold more than their ledger. violation_policy.h decides which of these processes are
 * offenders, and which action is due. Each offender is counted and logged once. It is also
 * reported, frozen or ended: the settings and its tenant each choose one of these (`on_violation`),
 * and the stricter choice wins.
 *
 * To freeze, the freezer freezes the cgroup of the process's container if only that one tenant uses
 * it. Otherwise the process itself is stopped with SIGSTOP, and stopped again whenever it is
 * continued. When this daemon ends, all frozen and stopped processes continue, as with `allot
 * resume`. If the daemon is killed, the next daemon continues the stopped processes (file
 * "stopped").
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

/*
 * Call after the node's loop exists. Continues the processes that an earlier daemon left stopped.
 */
int violations_start(struct node *node, struct violations **ret, struct error *err);
/*
 * Continues the stopped processes and frees the state. Frozen containers are left to the freezer,
 * which thaws them at its end. NULL is allowed; returns NULL.
 */
struct violations *violations_stop(struct violations *violations);

/* Call with the readings of all cards, after they were compared with the tenants' processes. */
void violations_census(struct violations *violations, const struct census_card *cards);
/*
 * Call when several censuses in a row have shown that a process holds held_bytes, and that the
 * process or its tenant exceeds its ledger or quota by beyond_bytes.
 */
void violations_note_over(struct violations *violations, struct tenant *tenant, int pid,
			  enum violation_reason reason, unsigned card, uint64_t held_bytes,
			  uint64_t beyond_bytes);
/*
 * Whether some unregistered process may still turn out to be an offender, so that the next census
 * must not be left out.
 */
bool violations_has_open(const struct node *node);

/*
 * Lets the offenders of a tenant continue and takes no further action on them. The tenant may be
 * gone. Returns their number, or -EPERM if the caller may not: only administrators may undo what
 * the settings demand.
 */
int violations_resume(struct violations *violations, const char *tenant, bool is_admin,
		      struct error *err);

/* Call when a tenant was renamed. */
void violations_rename_tenant(struct violations *violations, const char *from, const char *to);

/* Returns the offenders of a tenant: [{"pid","name","reason","sign","action","memory_bytes"}]. */
json_t *violations_of_tenant(const struct violations *violations, const char *tenant);
/*
 * Returns what is known of an offender: {"tenant","reason","action"}; null if the process is none.
 */
json_t *violations_of_process(const struct violations *violations, int pid);

struct violations_figures violations_figures(const struct violations *violations);

/*
 * Returns the action for this tenant's offenders: its own choice or the setting, whichever is
 * stricter.
 */
enum on_violation violations_wanted(const struct tenant *tenant);
