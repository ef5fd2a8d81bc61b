/*
 * The daemon's parts, and what they are told. Each part has a row in the table of subsystems.c, the one file that knows
 * all of them. A part that sits below others (node.c, tenant.c, health.c) tells what happened by the functions here, and
 * includes none of those that want to know.
 *
 * Rows start in the order of the table and stop in reverse order, also where a start failed: so each stop function
 * accepts a part that was never started. tenant_added and tenant_begins go in the order of the table, tenant_removed in reverse.
 * Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct census_card;
struct node;
struct tenant;

/* NULL: the part does not want to know. */
struct subsystem {
	const char *name;
	int (*start)(struct node *node, struct error *err);
	void (*stop)(struct node *node);
	/*
	 * The tenant has its region and its leases; nobody else knows of it yet. Not `is_new`: adopted, it may have
	 * processes at work. A failure undoes the tenant.
	 */
	int (*tenant_added)(struct tenant *tenant, bool is_new, struct error *err);
	/* The same, at the same moment, for a part that can't fail. */
	void (*tenant_begins)(struct tenant *tenant);
	/* Leases and processes are still there. Also of a tenant that could not be made, whatever it lacks. */
	void (*tenant_removed)(struct tenant *tenant);
	/* It ends for good; its files go as well. Comes before tenant_removed. */
	void (*tenant_ended)(struct tenant *tenant, const char *why);
	/* It was removed, but processes of it live: it may take no more. */
	void (*tenant_retired)(struct tenant *tenant);
	/* Its share, its priority or its choice to lend is another one. */
	void (*share_changed)(struct tenant *tenant);
	/* A tenant came or went, or its terms changed. */
	void (*tenants_changed)(struct node *node);
	/* There are tenants now (node->populated), or none any more. */
	void (*populated_changed)(struct node *node);
	/* A process came, and is not told so yet, or went. */
	void (*processes_changed)(struct node *node);
	/* A process is dead, and has no slot any more. */
	void (*process_gone)(struct tenant *tenant, int pid, unsigned slot);
	/* NVML was read: an array, a card of the node each. */
	void (*census_read)(struct node *node, const struct census_card *seen);
	/* Does something depend on the next census, so that it may not wait until something changes? */
	bool (*needs_census)(const struct node *node);
	/* The driver has answered what the cards have in use. */
	void (*cards_answered)(struct node *node);
};

/* -errno of the first row that fails; the rows after it are not told. */
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
/* To be called by whoever adds or removes a tenant or changes its terms; tells populated_changed as well. */
void tell_tenants_changed(struct node *node);
