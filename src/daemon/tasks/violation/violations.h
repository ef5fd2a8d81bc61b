/*
 * Finds offenders: a tenant's processes that use a GPU without allot's library, hold more memory than the library counted, or
 * use more GPU time than the tenant is charged for. After each census, violations.c looks for processes that never registered
 * with the library; census_compare.c reports processes that hold too much, and time_readings.c those that use too much time.
 * violation_policy.h decides which are offenders and which action is due. An offender is counted and logged once, and reported,
 * frozen or ended: the stricter of the settings' and its tenant's choice (`on_violation`).
 *
 * If only this tenant uses the process's container, freezing uses the container's cgroup. Otherwise the process gets SIGSTOP,
 * and gets it again whenever something continues the process. When this daemon ends, all frozen and stopped processes continue,
 * as with `allot resume`; after a kill the next daemon continues the stopped processes (file "stopped"). Main thread only.
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

/* Call after the loop exists. Continues processes that an earlier daemon left stopped. */
int violations_start(struct node *node, struct violations **ret, struct error *err);
/* Continues stopped processes. The freezer thaws containers at its own end. NULL is allowed; returns NULL. */
struct violations *violations_stop(struct violations *violations);

/* Call with the readings of all cards, after census_compare() has compared them with tenants' ledgers. */
void violations_census(struct violations *violations, const struct census_card *cards);
/*
 * Call after several censuses in a row showed that a process holds held_bytes. Either the process holds beyond_bytes more than
 * the library counted for it, or its tenant is beyond_bytes above the quota.
 */
void violations_note_over(struct violations *violations, struct tenant *tenant, int pid,
			  enum violation_reason reason, unsigned card, uint64_t held_bytes,
			  uint64_t beyond_bytes);
/*
 * Call when several readings (time_readings.h) showed that the tenant uses more of the card's time than it is charged for, and
 * the process has the largest part. `measured`: share of the card's time that the driver measured in the last reading, 0 to 1.
 * `charged`: the share that was charged to the tenant, without the unauthorized part (time_paid()).
 */
void violations_note_time(struct violations *violations, struct tenant *tenant, int pid,
			  unsigned card, double measured, double charged);
/* Returns the tenant to which an unregistered process seems to belong, by signs in /proc (signs.h). Returns NULL if unknown. */
struct tenant *violations_owner_of(struct violations *violations, int pid);
/*
 * Returns true if some unregistered process may turn out to be an offender, or a tenant is suspected (violation_policy.h), so
 * that the next census must take place.
 */
bool violations_has_open(const struct node *node);

/*
 * Lets a tenant's offenders continue for good, even after the tenant's end. Returns their number, -EPERM if the settings
 * demand freezing and the caller is no administrator, or another -errno if a container cannot be thawed yet.
 */
int violations_resume(struct violations *violations, const char *tenant, bool is_admin,
		      struct error *err);

void violations_rename_tenant(struct violations *violations, const char *from, const char *to);

/* Returns a tenant's offenders: [{"pid","name","reason","sign","action","memory_bytes"}]. */
json_t *violations_of_tenant(const struct violations *violations, const char *tenant);
/* Returns {"tenant","reason","action"} of an offender; null for another process. */
json_t *violations_of_process(const struct violations *violations, int pid);

struct violations_figures violations_figures(const struct violations *violations);

/*
 * Returns the action for offenders: the stricter of the tenant's own choice and the setting. But if that is freezing and the
 * tenant is an MPS client, returns ON_VIOLATION_REPORT.
 */
enum on_violation violations_action(const struct tenant *tenant);
