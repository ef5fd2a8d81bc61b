/*
 * Tenants that share their card at the same time with others of their group: which group each is in, what its processes
 * need to find the group's MPS server, and what became of that. Main thread only.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/json.h"
#include "policy/space/choice.h"

struct mps_group;

/* `faults`: since this daemon started, of each kind; see space_fault_name(). */
struct space_figures {
	uint64_t groups;  /* that there are */
	uint64_t tenants; /* in them */
	uint64_t faults[SPACE_FAULT_KINDS];
};

/* The groups of the daemon before; then, when its tenants are adopted, those that nobody is in are ended. */
int space_open(struct node *node, struct error *err);
void space_sweep(struct node *node);
/* From here on tenants leave by the end of this daemon alone: groups with tenants run on, for the next one. */
void space_let_run(struct node *node);
void space_close(struct node *node);

/*
 * Decides how a tenant of these terms shares, and writes it there. namespace_name: Kubernetes's, "": none. Errors as of
 * sharing_choose() and space_find().
 */
int space_choose(struct node *node, const struct sharing_wish *wish, const char *namespace_name,
		 struct tenant_terms *terms, struct error *err);
/* "sharing" and "group" of a request. */
int space_read_wish(const json_t *request, struct sharing_wish *ret, struct error *err);

/*
 * As subsystem.h has it: puts a tenant into its group, and starts that. Of a tenant that takes turns: nothing. One that
 * is not new stays in its group where that can't be started.
 */
int space_tenant_added(struct tenant *tenant, bool is_new, struct error *err);
void space_leave(struct tenant *tenant);
/* A process of it has ended: a fault that was its own may be told only now. */
void space_note_gone(struct tenant *tenant, int pid, unsigned slot);

/* A process that is to have its work done by MPS has to wait: without, it would go on by itself. */
bool space_is_starting(const struct tenant *tenant);
/* -EHOSTDOWN: MPS could not be started; -ENOSPC: the server has all clients that it takes. */
int space_check_process(const struct tenant *tenant, struct error *err);
/* Its memory can't be moved off the card, nor it be frozen, since MPS serves it. */
bool space_is_client(const struct tenant *tenant);

/* Calls add(data, name, value) for each variable of its processes' environment. */
typedef int (*space_add)(void *data, const char *name, const char *value);
int space_each_variable(const struct tenant *tenant, const char *pipe_dir, space_add add,
			void *data);
/* Where its group listens, on the host; false: it is in none. */
bool space_pipe_dir(const struct tenant *tenant, char path[NODE_PATH_MAX]);

/* Adds what the reply to `create` says of it. */
void space_describe(const struct tenant *tenant, json_t *reply);
/* "space" of the list: null of who takes turns. */
json_t *space_to_json(const struct tenant *tenant);
const char *space_fault_name(unsigned kind); /* "server" ... */
struct space_figures space_figures(const struct node *node);
