/*
 * A tenant's state file, tenants/<id>/tenant.json: what a restarted daemon needs to adopt it. Written
 * whole beside the old one and renamed over it, so that a full disk or a crash leaves the old one.
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "daemon/state/tenant.h"

#define TENANT_STATE_VERSION 1
#define TENANT_STATE_MAX_BYTES (4 << 20)

/*
 * Writes the file now. `sync`: and waits for the disk, for what a caller was promised. -errno (ENOSPC,
 * ...) leaves the old file in force.
 */
int tenant_state_save(struct tenant *tenant, bool sync, struct error *err);
/* Handler of node->save_timer, which tenant_save_soon() starts: `data` is the node. */
void tenant_state_save_due(void *data, uint32_t events);
/* Saves soon when the tenant's processes hold another amount than the file says. */
void tenant_state_check_usage(struct tenant *tenant);

struct tenant_state {
	struct tenant_terms terms;
	uint64_t epoch;             /* of the daemon that wrote it */
	struct admission_past past; /* see admission.h */
	double use_ns;              /* faded, when it was written */
	struct old_process *old;    /* its processes, owned */
	int command_pid;            /* the one that holds it, as tenant.command_pid; 0: not known */
	uint64_t command_start;
};

/*
 * Reads a file that must be called `id`. Every value is checked: -EINVAL for what is torn or not
 * understood, -ENODEV when a card of it is gone.
 */
int tenant_state_load(struct node *node, const char *path, const char *id, struct tenant_state *ret,
		      struct error *err);
void tenant_state_free(struct tenant_state *state); /* what it holds */

/* The numbers of the slots: a list. */
json_t *slots_to_json(const struct slots *slots);
