/*
 * A session is one caller of the control protocol (docs/reference/protocol.md), with the tenants that it holds (keeps alive).
 * It does not depend on a socket. Main thread only.
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
	struct peer *peer; /* the caller's process; NULL if unknown, as for HTTP */
	int pid;           /* pid of the process that connected, as the kernel reports it */
	uid_t uid;
	bool is_admin;    /* the caller is root or in group allot */
	bool is_page;     /* the caller is known only by its HTTP token */
	uint64_t came_ns; /* clock_now_ns() when the request's last part was noticed; 0: unknown */
	/* Ids of the tenants that the caller holds; not pointers, because a tenant may end while it is held. */
	char held[SESSION_MAX_HELD][TENANT_ID_MAX];
	size_t held_count;
	struct tenant_trace *trace; /* trace that the caller began; NULL: none */
	/* Descriptors for the latest reply. The sender of the reply closes them. */
	int fds[SESSION_MAX_FDS];
	unsigned fd_count;
};

/* Call when the caller is gone: releases its tenants, which may end them. */
void session_end(struct session *session);
/* Call when the daemon ends: like session_end(), but the tenants stay. */
void session_drop(struct session *session);

/* Makes the caller hold the tenant, unless the caller does so already. Returns -ENOSPC if the caller holds too many tenants. */
int session_hold(struct session *session, struct tenant *tenant, struct error *err);

/*
 * Returns -EDQUOT if the caller's user already has SESSION_USER_TENANTS tenants, a quarter of the most that a GPU can have
 * (ARBITER_MAX_TENANTS). Applies to users of a system daemon, except root and members of group allot.
 */
#define SESSION_USER_TENANTS 64
int session_check_tenants(const struct session *session, struct error *err);

/* Finds the tenant that the request's member `key` names. Returns -EPERM if the caller may not change the tenant. */
int session_find_own(struct session *session, const json_t *request, const char *key,
		     struct tenant **ret, struct error *err);
