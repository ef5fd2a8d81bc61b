/*
 * A tenant's state file, tenant.json in its directory (tenant_path()), from which a restarted daemon adopts the tenant. A new
 * file is renamed over the old one, so a crash or a full disk never leaves a partly written file.
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "daemon/state/tenant.h"

#define TENANT_STATE_VERSION 1
#define TENANT_STATE_MAX_BYTES (4 << 20)

/* Writes the file now; with `sync` also waits for the disk. On -errno the old file stays in force. */
int tenant_state_save(struct tenant *tenant, bool sync, struct error *err);
/* Like tenant_state_save(), but on failure logs the error with `risk`, which tells what may go wrong, and tries again soon. */
void tenant_state_save_or_retry(struct tenant *tenant, bool sync, const char *risk);
/* Handler of node->save_timer, which tenant_save_soon() starts. `data` is the node. */
void tenant_state_save_due(void *data, uint32_t events);
/* Saves the file soon if the processes hold more or less than it says. */
void tenant_state_check_usage(struct tenant *tenant);

struct tenant_state {
	struct tenant_terms terms;
	struct memory_wait_past past; /* grant, or place in the queue for memory; all 0: neither */
	double use_ns;                /* decayed GPU time when the file was written */
	struct old_process *old;      /* the processes in the file; owned */
	/* the command that holds the tenant, as tenant.command_pid; 0: unknown */
	int command_pid;
	uint64_t command_start;
	char *command_cgroup; /* as tenant.command_cgroup; owned */
};

/* Reads a state file, whose tenant must have `id`. Returns -EINVAL for a torn or invalid file, -ENODEV if a card is gone. */
int tenant_state_load(struct node *node, const char *path, const char *id, struct tenant_state *ret,
		      struct error *err);
/* Frees the members, not *state itself. */
void tenant_state_free(struct tenant_state *state);

json_t *slots_to_json(const struct slots *slots);
