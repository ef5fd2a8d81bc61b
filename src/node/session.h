/*
 * The control protocol (docs/protocol.md) without its socket: one caller, its requests and replies,
 * the tenants it holds. Main thread only.
 */
#ifndef ALLOT_NODE_SESSION_H
#define ALLOT_NODE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "node/json.h"
#include "node/tenant.h"

#define SESSION_MAX_HELD 256
#define SESSION_MAX_FDS 16

struct peer;
struct tenant_trace;

struct session {
	struct node *node;
	struct peer *peer; /* the caller's process; NULL: not known, as by HTTP */
	int pid;           /* of the caller when it connected, as the kernel says */
	uid_t uid;
	bool is_admin;    /* root, or in group allot */
	bool is_page;     /* by HTTP: the token is all that is known of the caller */
	uint64_t came_ns; /* when the request began to come; 0: not known */
	/* By id: a tenant may end under its holder. */
	char held[SESSION_MAX_HELD][TENANT_ID_MAX];
	size_t held_count;
	struct tenant_trace *trace; /* that it began; NULL: none */
	/* Descriptors that go with the reply just made: whoever sends that takes them out, and closes them. */
	int fds[SESSION_MAX_FDS];
	unsigned fd_count;
};

/*
 * Answers one request (a line, without its end). The reply is one line with its end, to be freed;
 * NULL: out of memory.
 */
char *session_answer(struct session *session, const char *line, size_t length);

/* The caller is gone: lets go of what it holds, which may end tenants. */
void session_end(struct session *session);
/* The same, but for tenants that it holds: the daemon ends. */
void session_drop(struct session *session);

/* Holds a tenant for this caller, once. -ENOSPC: too many. */
int session_hold(struct session *session, struct tenant *tenant, struct error *err);

/* A request's handler: adds to `reply`, or fails with -errno. */
int request_hello(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_create(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_attach(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_set(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_pause(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_resume(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_unqueue(struct session *session, const json_t *request, json_t *reply,
		    struct error *err);
int request_list(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_tasks(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_topology(struct session *session, const json_t *request, json_t *reply,
		     struct error *err);
int request_cordon(struct session *session, const json_t *request, json_t *reply, struct error *err);
/* In mps/. */
int request_space(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_remove(struct session *session, const json_t *request, json_t *reply, struct error *err);
/* In trace/. */
int request_trace(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_trace_poll(struct session *session, const json_t *request, json_t *reply,
		       struct error *err);
int request_trace_end(struct session *session, const json_t *request, json_t *reply,
		      struct error *err);
/* In claims/. */
int request_claim(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_injection(struct session *session, const json_t *request, json_t *reply,
		      struct error *err);
int request_release(struct session *session, const json_t *request, json_t *reply,
		    struct error *err);
int request_claims(struct session *session, const json_t *request, json_t *reply, struct error *err);

/* Adds what the reply to `create` says of a tenant. */
void request_describe_tenant(const struct tenant *tenant, json_t *reply);
/* What a caller should know of terms that were accepted: in the reply and in the log. */
void request_warn_of_overcommit(const struct tenant *tenant, json_t *reply);

/* The tenant that a request means, by `key`; -EPERM when the caller may not change it. */
int session_find_own(struct session *session, const json_t *request, const char *key,
		     struct tenant **ret, struct error *err);

#endif
