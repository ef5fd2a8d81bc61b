/*
 * The audit log (setting audit_log; its lines are allot-audit(5)'s): who changed what of whom, and when. One JSON line a
 * thing that happened, written before it is answered.
 *
 * Who does something is known where a request begins and not where its effects are: so it is set there, for as long as
 * that lasts (audit_set_actor), and what happens meanwhile is that one's doing; else the daemon's own.
 *
 * NULL is an audit log that is off: every function takes it. Main thread only.
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
	AUDIT_BY_DAEMON,     /* by its own rules */
	AUDIT_BY_SOCKET,     /* uid and pid: SO_PEERCRED */
	AUDIT_BY_PAGE,       /* by HTTP: who had the token */
	AUDIT_BY_KUBELET,    /* by a call of the device plugin */
	AUDIT_BY_KUBERNETES, /* by what an object of the API says */
};

/* Texts are the caller's. */
struct audit_actor {
	enum audit_by by;
	uid_t uid;
	int pid;
	const char *pod_namespace, *pod, *pod_uid; /* AUDIT_BY_KUBERNETES */
};

struct audit_figures {
	uint64_t lines, lost;
};

/* *ret is NULL if audit_log is off. A file that can't be opened is logged, and is no failure. -ENOMEM. */
int audit_start(struct node *node, struct audit **ret, struct error *err);
struct audit *audit_stop(struct audit *audit); /* returns NULL */
/* After SIGHUP. */
void audit_reopen(struct audit *audit);
struct audit_figures audit_figures(const struct audit *audit);

/* Names the actor of all lines until the next call; NULL: the daemon itself. The actor stays the caller's. */
void audit_set_actor(struct audit *audit, const struct audit_actor *actor);
/* The same if no actor is set; otherwise false, and the actor stays. */
bool audit_set_actor_if_none(struct audit *audit, const struct audit_actor *actor);

/* Writes one line. `what` has its further members, and is consumed; NULL: none, or out of memory. */
void audit_write(struct audit *audit, const char *event, json_t *what);

/* The tenant's present terms, which requests can change. The caller owns the object; NULL: audit_log is off, or no memory. */
json_t *audit_terms(const struct audit *audit, const struct tenant *tenant);
/* Adds the members that differ to `what`, as "old" and "new". NULL: there was, or is, no tenant. Pure. */
void audit_add_change(json_t *what, const json_t *old, const json_t *now);
/* {"tenant","id","uid"}, and for a claim its members: an object for audit_write(), NULL as there. */
json_t *audit_about(const struct audit *audit, const struct tenant *tenant);

/* As subsystem.h has it. */
void audit_tenant_ended(struct tenant *tenant, const char *why);
