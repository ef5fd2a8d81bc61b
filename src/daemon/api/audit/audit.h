/*
 * The audit log (setting audit_log; format: allot-audit(5)): who changed what, and when. Each event is one JSON line, written
 * before the request is answered.
 *
 * The code that receives a request knows who made it (the actor); the code that writes the line does not. So audit_set_actor()
 * sets the actor for the whole request. While no actor is set, the daemon itself counts as the actor.
 *
 * All functions accept NULL, for a log that is off. Main thread only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct audit;
struct node;
struct tenant;

enum audit_by {
	AUDIT_BY_DAEMON,
	AUDIT_BY_SOCKET,     /* control socket: uid and pid by SO_PEERCRED */
	AUDIT_BY_PAGE,       /* the web page, over HTTP with its token */
	AUDIT_BY_KUBELET,    /* a call to the device plugin */
	AUDIT_BY_KUBERNETES, /* an object of the Kubernetes API */
};

/* The texts belong to the code that made the struct. */
struct audit_actor {
	enum audit_by by;
	uid_t uid;
	int pid;
	const char *pod_namespace, *pod, *pod_uid; /* set for AUDIT_BY_KUBERNETES */
};

struct audit_figures {
	uint64_t lines, lost; /* lines written, and lines that could not be written */
};

/*
 * Opens the file of the audit log. *ret is NULL if the setting audit_log is off. Returns 0 or -ENOMEM. If the file cannot be
 * opened, only logs this and returns 0.
 */
int audit_start(struct node *node, struct audit **ret, struct error *err);
struct audit *audit_stop(struct audit *audit); /* returns NULL */
/* Opens the file again by name, since a log rotation may have renamed it. For SIGHUP. */
void audit_reopen(struct audit *audit);
struct audit_figures audit_figures(const struct audit *audit);

/* Sets the actor of all lines until the next call; NULL: the daemon. Copies *actor, whose texts must stay valid until then. */
void audit_set_actor(struct audit *audit, const struct audit_actor *actor);
/* Like audit_set_actor(), but returns false and does nothing if an actor other than the daemon is set. */
bool audit_set_actor_if_none(struct audit *audit, const struct audit_actor *actor);

/*
 * Writes one line. `what` has the members that this kind of event adds; it is freed here. If `what` is NULL, memory ran out,
 * and the line counts as lost.
 */
void audit_write(struct audit *audit, const char *event, json_t *what);

/* Returns the tenant's terms, for the caller to free. NULL if the log is off or memory is out. */
json_t *audit_terms(const struct audit *audit, const struct tenant *tenant);
/*
 * Adds to `what`, as "old" and "new", the terms in which `old` and `now` (from audit_terms()) differ. If `old` is NULL, as for
 * a new tenant, "new" gets all terms of `now`. If `now` is NULL, "old" gets all terms of `old`.
 */
void audit_add_change(json_t *what, const json_t *old, const json_t *now);
/*
 * Returns an object for audit_write(): {"tenant","id","uid"}, and "claim" (the claim's key) if the tenant has a claim. NULL if
 * the log is off or memory is out.
 */
json_t *audit_about(const struct audit *audit, const struct tenant *tenant);

/* Handler of the event tenant_ended (subsystem.h). */
void audit_tenant_ended(struct tenant *tenant, const char *why);
