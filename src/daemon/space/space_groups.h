/*
 * Tenants that run on a card at the same time as the others of their group: which group a tenant is
 * in, the environment that its processes need to find the group's MPS server, and the group's
 * faults. Main thread only.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/json.h"
#include "policy/space/sharing_mode.h"

struct mps_group;

/* `faults`: by kind, since this daemon started; see space_fault_name(). */
struct space_figures {
	uint64_t groups;  /* present groups */
	uint64_t tenants; /* tenants in groups */
	uint64_t faults[SPACE_FAULT_KINDS];
};

/*
 * space_open() loads the previous daemon's groups. space_sweep() ends the groups without a tenant:
 * call it once the previous daemon's tenants are adopted.
 */
int space_open(struct node *node, struct error *err);
void space_sweep(struct node *node);
/*
 * Call before the daemon ends: tenants that are removed from now on do not end their groups, which
 * run on for the next daemon.
 */
void space_let_run(struct node *node);
void space_close(struct node *node);

/*
 * Decides whether a tenant gets time slices or joins a group, and writes that to `terms`.
 * namespace_name is the Kubernetes namespace, or "". Returns the errors of sharing_choose() and
 * space_find().
 */
int space_choose(struct node *node, const struct sharing_wish *wish, const char *namespace_name,
		 struct tenant_terms *terms, struct error *err);
/* Reads members "sharing" and "group" of a request. */
int space_read_wish(const json_t *request, struct sharing_wish *ret, struct error *err);

/*
 * Event of subsystem.h: puts a tenant into its group and starts the group. Does nothing for a
 * time-sliced tenant. An adopted tenant stays in its group even if the group cannot be started.
 */
int space_tenant_added(struct tenant *tenant, bool is_new, struct error *err);
void space_leave(struct tenant *tenant);
/*
 * Call when a process of the tenant has ended. Remembers its pid, because MPS may report a fault of
 * that process later.
 */
void space_note_gone(struct tenant *tenant, int pid, unsigned slot);

/*
 * Whether MPS for this tenant is still starting, so that a new process must wait: if it continued
 * now, it would run without MPS.
 */
bool space_is_starting(const struct tenant *tenant);
/*
 * Whether a new process may start. Returns -EHOSTDOWN if MPS could not be started, -ENOSPC if the
 * server has its maximum of clients.
 */
int space_check_process(const struct tenant *tenant, struct error *err);
/*
 * Whether the tenant's processes are clients of MPS. If so, its memory cannot be moved off the
 * card, and it cannot be frozen.
 */
bool space_is_client(const struct tenant *tenant);

/* Calls add(data, name, value) for each environment variable that the tenant's processes need. */
typedef int (*space_add)(void *data, const char *name, const char *value);
int space_each_variable(const struct tenant *tenant, const char *pipe_dir, space_add add,
			void *data);
/*
 * Gives the directory on the host where the tenant's group listens. Returns false if the tenant is
 * in no group.
 */
bool space_pipe_dir(const struct tenant *tenant, char path[NODE_PATH_MAX]);

/* Adds the group to the reply to `create`. */
void space_describe(const struct tenant *tenant, json_t *reply);
/* Makes member "space" of the tenant in the reply to `list`; null for a time-sliced tenant. */
json_t *space_to_json(const struct tenant *tenant);
const char *space_fault_name(unsigned kind); /* "server" etc. */
struct space_figures space_figures(const struct node *node);
