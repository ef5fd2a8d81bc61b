/*
 * The daemon's parts (subsystems) and the events that they handle. Only subsystems.c, with a row for each part, knows all
 * parts. Other files (node.c, tenant.c, health.c) report events by the functions here, without including the parts that handle
 * them.
 *
 * Parts start in table order and stop in reverse, even after a failed start: a stop function must accept a part that was not
 * started. tenant_added and tenant_begins run in table order, tenant_removed in reverse. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct census_card;
struct node;
struct tenant;

/* A part's row of the table. A handler that is NULL ignores its event. */
struct subsystem {
	const char *name;
	int (*start)(struct node *node, struct error *err);
	void (*stop)(struct node *node);
	/*
	 * A tenant was added; it has its region and leases. If not `is_new`, it is an earlier daemon's tenant and may have
	 * processes. If a part fails, the parts after it are not called, and the tenant is not made.
	 */
	int (*tenant_added)(struct tenant *tenant, bool is_new, struct error *err);
	/* Called right after tenant_added. For a handler that cannot fail. */
	void (*tenant_begins)(struct tenant *tenant);
	/* Called before leases and processes are freed; also for a tenant that was not made completely. */
	void (*tenant_removed)(struct tenant *tenant);
	/* The tenant ends for good, and its files will be deleted. Called before tenant_removed. */
	void (*tenant_ended)(struct tenant *tenant, const char *why);
	/* The tenant was removed while some of its processes live: they may take no more memory. */
	void (*tenant_retired)(struct tenant *tenant);
	/* The tenant's share, priority or choice to borrow has changed. */
	void (*share_changed)(struct tenant *tenant);
	/* A tenant was added or removed, or changed its terms. */
	void (*tenants_changed)(struct node *node);
	/* node->populated has changed: the first tenant was added, or the last one removed. */
	void (*populated_changed)(struct node *node);
	/* A process was added, and its registration is not answered yet; or a process was removed. */
	void (*processes_changed)(struct node *node);
	/* The process is dead and no longer has its slot. */
	void (*process_gone)(struct tenant *tenant, int pid, unsigned slot);
	/* A census is complete. `seen` has one element per card. */
	void (*census_read)(struct node *node, const struct census_card *seen);
	/* Returns whether this part needs the next census even if the cards' used memory is unchanged. */
	bool (*needs_census)(const struct node *node);
	/* health.c has read how much memory is used on each card; once a second. */
	void (*cards_polled)(struct node *node);
};

/* Calls the handler `event` of each part that has one, in table order. For the events without a function below. */
#define NOTIFY(node, event, ...) \
	do { \
		for (const struct subsystem *s_ = (node)->subsystems; s_ && s_->name; s_++) \
			if (s_->event) \
				s_->event(__VA_ARGS__); \
	} while (0)

/* Calls tenant_added and tenant_begins of each part. Stops at the first failure and returns its -errno. */
int notify_tenant_added(struct node *node, struct tenant *tenant, bool is_new, struct error *err);
void notify_tenant_removed(struct node *node, struct tenant *tenant);
bool any_needs_census(const struct node *node);
/* Reports tenants_changed and, if it applies, populated_changed. Call after adding, removing or changing a tenant. */
void notify_tenants_changed(struct node *node);
