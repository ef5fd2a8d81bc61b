/*
 * The daemon's parts and the events that they receive. Each part has a row in the table of
 * subsystems.c, the only file that knows all parts. A lower part (node.c, tenant.c, health.c)
 * reports events by the functions here and includes none of the parts that receive them.
 *
 * Parts start in table order and stop in reverse order. All parts are stopped even after a failed
 * start, so each stop function must accept a part that was never started. tenant_added and
 * tenant_begins are called in table order, tenant_removed in reverse order. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct census_card;
struct node;
struct tenant;

/* A part's functions. NULL: the part ignores this event. */
struct subsystem {
	const char *name;
	int (*start)(struct node *node, struct error *err);
	void (*stop)(struct node *node);
	/*
	 * Called for a new or adopted tenant that has its region and its leases. Parts later in the
	 * table do not know it yet. If `is_new` is false, the tenant was adopted and may have
	 * running processes. If a part fails, the tenant is not made.
	 */
	int (*tenant_added)(struct tenant *tenant, bool is_new, struct error *err);
	/* Like tenant_added, called right after it, for a part that cannot fail. */
	void (*tenant_begins)(struct tenant *tenant);
	/*
	 * Called before the tenant's leases and processes are freed. Also called for a tenant that
	 * could not be made completely.
	 */
	void (*tenant_removed)(struct tenant *tenant);
	/* The tenant ends for good, and its files will be deleted. Called before tenant_removed. */
	void (*tenant_ended)(struct tenant *tenant, const char *why);
	/* The tenant was removed while processes of it live: it may take no more memory. */
	void (*tenant_retired)(struct tenant *tenant);
	/* The tenant's share, its priority or its choice to borrow has changed. */
	void (*share_changed)(struct tenant *tenant);
	/* A tenant was added or removed, or its terms changed. */
	void (*tenants_changed)(struct node *node);
	/* The first tenant was added or the last one removed: see node->populated. */
	void (*populated_changed)(struct node *node);
	/*
	 * A process was added, but its registration is not answered yet; or a process was removed.
	 */
	void (*processes_changed)(struct node *node);
	/* The process is dead and no longer has its slot. */
	void (*process_gone)(struct tenant *tenant, int pid, unsigned slot);
	/* A census is complete. `seen` is an array with one element per card of the node. */
	void (*census_read)(struct node *node, const struct census_card *seen);
	/*
	 * Whether this part needs the next census, even if the cards' used memory has not changed.
	 */
	bool (*needs_census)(const struct node *node);
	/*
	 * The driver has answered how much memory is in use on the cards (health.c asks each
	 * second).
	 */
	void (*cards_answered)(struct node *node);
};

/*
 * Calls tenant_added and tenant_begins of each part. If a part fails, returns its -errno and does
 * not call the parts after it.
 */
int tell_tenant_added(struct node *node, struct tenant *tenant, bool is_new, struct error *err);
void tell_tenant_removed(struct node *node, struct tenant *tenant);
void tell_tenant_ended(struct node *node, struct tenant *tenant, const char *why);
void tell_tenant_retired(struct node *node, struct tenant *tenant);
void tell_share_changed(struct node *node, struct tenant *tenant);
void tell_processes_changed(struct node *node);
void tell_process_gone(struct node *node, struct tenant *tenant, int pid, unsigned slot);
void tell_census_read(struct node *node, const struct census_card *seen);
void tell_cards_answered(struct node *node);
bool ask_needs_census(const struct node *node);
/* Call after adding or removing a tenant or changing its terms. Reports populated_changed too. */
void tell_tenants_changed(struct node *node);
