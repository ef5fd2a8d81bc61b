/*
 * A group is the tenants that run on a card at the same time, through an MPS server (group.h); other tenants are time-sliced.
 * This module chooses a tenant's group, gives the environment that its processes need, and reports the server's faults. Main
 * thread only.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/json.h"
#include "policy/space/sharing_mode.h"

struct mps_group;

/* `faults` counts by kind (space_fault_name()) since the daemon started. */
struct space_figures {
	uint64_t groups;
	uint64_t tenants;
	uint64_t faults[SPACE_FAULT_KINDS];
};

/* space_open() loads the previous daemon's groups. space_sweep() ends groups without a tenant; call it after adopt_all(). */
int space_open(struct node *node, struct error *err);
void space_sweep(struct node *node);
/* Call before the daemon ends. From then on, the removal of a tenant leaves its group running for the next daemon. */
void space_keep_groups_running(struct node *node);
void space_close(struct node *node);

/*
 * Writes to `terms` whether the tenant gets time slices or a group. namespace_name is the Kubernetes namespace or "". Returns
 * -ENOSPC if the group's MPS server is full, or an error of sharing_choose() or space_find().
 */
int space_choose(struct node *node, const struct sharing_request *request,
		 const char *namespace_name, struct tenant_terms *terms, struct error *err);
/* Reads the members "sharing" and "group" of a JSON request. Returns 0, or -EINVAL for an invalid value. */
int space_read_request(const json_t *request, struct sharing_request *ret, struct error *err);

/* Handler of the event tenant_added (subsystem.h). If the tenant's group cannot start, a new tenant is refused. */
int space_tenant_added(struct tenant *tenant, bool is_new, struct error *err);
void space_leave(struct tenant *tenant);
/* Call when a process has ended. Remembers its pid, because MPS may report its fault later. */
void space_note_exited(struct tenant *tenant, int pid, unsigned slot);

/* Returns true if MPS is starting: a new process must wait, or it would run without MPS. */
bool space_is_starting(const struct tenant *tenant);
/* Checks whether a new process may start. Returns -EHOSTDOWN if MPS could not be started, -ENOSPC if the server is full. */
int space_check_process(const struct tenant *tenant, struct error *err);
/* Returns true if the tenant's processes are MPS clients, which cannot be moved off the card or frozen. */
bool space_is_client(const struct tenant *tenant);

/* Calls add(data, name, value) for each environment variable that the tenant's processes need. */
typedef int (*space_add)(void *data, const char *name, const char *value);
int space_each_variable(const struct tenant *tenant, const char *pipe_dir, space_add add,
			void *data);
/* Writes to `path` the host's directory with the sockets of the group's MPS server. Returns false without a group. */
bool space_pipe_dir(const struct tenant *tenant, char path[NODE_PATH_MAX]);

/* Adds to the reply to `create` how the tenant shares, and its group's state and environment variables. */
void space_describe(const struct tenant *tenant, json_t *reply);
/* Makes the member "space" of the tenant in the reply to `list`; null for a time-sliced tenant. */
json_t *space_to_json(const struct tenant *tenant);
const char *space_fault_name(unsigned kind);
struct space_figures space_figures(const struct node *node);
