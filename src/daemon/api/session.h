/*
 * The control protocol (docs/reference/protocol.md) without its socket: one caller, its requests and replies,
 * the tenants it holds. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/state/tenant.h"
#include "daemon/util/json.h"

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

/* The caller is gone: lets go of what it holds, which may end tenants. */
void session_end(struct session *session);
/* The same, but for tenants that it holds: the daemon ends. */
void session_drop(struct session *session);

/* Holds a tenant for this caller, once. -ENOSPC: too many. */
int session_hold(struct session *session, struct tenant *tenant, struct error *err);

/* The tenant that a request means, by `key`; -EPERM when the caller may not change it. */
int session_find_own(struct session *session, const json_t *request, const char *key,
		     struct tenant **ret, struct error *err);
