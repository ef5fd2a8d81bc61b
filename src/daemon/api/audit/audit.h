/*
 * The audit log (setting audit_log; format: allot-audit(5)) records who changed what, and when. Each event is one JSON line,
 * written before the request is answered.
 *
 * The actor (who asked) is known where a request begins, but not where the lines about its effects are written. So
 * audit_set_actor() sets the actor for the duration of the request. Without one, the daemon itself counts as the actor.
 *
 * All functions accept NULL, which means that the audit log is off. Main thread only.
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
	AUDIT_BY_DAEMON,     /* the daemon's own rules */
	AUDIT_BY_SOCKET,     /* control socket: uid and pid by SO_PEERCRED */
	AUDIT_BY_PAGE,       /* HTTP: a caller with the token */
	AUDIT_BY_KUBELET,    /* a call to the device plugin */
	AUDIT_BY_KUBERNETES, /* an object of the Kubernetes API */
};

/* The caller who caused an audited event. The caller of these functions owns the texts. */
struct audit_actor {
	enum audit_by by;
	uid_t uid;
	int pid;
	const char *pod_namespace, *pod, *pod_uid; /* set for AUDIT_BY_KUBERNETES */
};

struct audit_figures {
	uint64_t lines, lost;
};

/*
 * Opens the file. Sets *ret to NULL if audit_log is off. If the file can't be opened, that is logged but not an error. Returns
 * -ENOMEM if out of memory.
 */
int audit_start(struct node *node, struct audit **ret, struct error *err);
struct audit *audit_stop(struct audit *audit); /* returns NULL */
/* Opens the file again under its name, since it may have been renamed to rotate it. To be called on SIGHUP. */
void audit_reopen(struct audit *audit);
struct audit_figures audit_figures(const struct audit *audit);

/*
 * Sets the actor of all lines until the next call; NULL means the daemon itself. The caller must keep the actor valid until
 * then.
 */
void audit_set_actor(struct audit *audit, const struct audit_actor *actor);
/* Sets the actor and returns true if no actor is set; otherwise returns false. */
bool audit_set_actor_if_none(struct audit *audit, const struct audit_actor *actor);

/*
 * Writes one line. `what` has the members that this kind of event adds, and is taken over. NULL means that memory ran out: the line
 * counts as lost.
 */
void audit_write(struct audit *audit, const char *event, json_t *what);

/*
 * Returns those of the tenant's current terms that requests can change. The caller owns the object. NULL if the audit log is off,
 * or if out of memory.
 */
json_t *audit_terms(const struct audit *audit, const struct tenant *tenant);
/*
 * Adds to `what` the terms in which `old` and `now` (from audit_terms()) differ, as "old" and "new". `old` or `now` is NULL if
 * the tenant did not exist then. Pure.
 */
void audit_add_change(json_t *what, const json_t *old, const json_t *now);
/*
 * Returns an object for audit_write() that names the tenant: {"tenant","id","uid"} and, if it belongs to a claim, the claim's
 * members. NULL if the audit log is off, or if out of memory.
 */
json_t *audit_about(const struct audit *audit, const struct tenant *tenant);

/* Event of subsystem.h: writes a line which says that the tenant has ended. */
void audit_tenant_ended(struct tenant *tenant, const char *why);
