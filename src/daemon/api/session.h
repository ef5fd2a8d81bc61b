/*
 * The control protocol (docs/reference/protocol.md) without its socket: one caller, its requests and replies, and the tenants
 * that it holds. Main thread only.
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
	int pid;           /* pid of the process that connected, according to the kernel */
	uid_t uid;
	bool is_admin;    /* the caller is root or in group allot */
	bool is_page;     /* the caller is known only by its HTTP token */
	uint64_t came_ns; /* when the request began to arrive, as clock_now_ns(); 0 if unknown */
	/* Ids of the tenants that the caller holds. Not pointers, since a tenant may end while it is held. */
	char held[SESSION_MAX_HELD][TENANT_ID_MAX];
	size_t held_count;
	struct tenant_trace *trace; /* the trace that the caller began; NULL if none */
	/* Descriptors that belong to the reply just made. The sender of the reply takes them from here and closes them. */
	int fds[SESSION_MAX_FDS];
	unsigned fd_count;
};

/* To be called when the caller has gone: releases what it holds, which may end tenants. */
void session_end(struct session *session);
/* To be called when the daemon ends: like session_end(), but the tenants stay. */
void session_drop(struct session *session);

/*
 * Makes this caller a holder of the tenant; no effect if it is one already. Returns -ENOSPC if the caller holds too many
 * tenants.
 */
int session_hold(struct session *session, struct tenant *tenant, struct error *err);

/* Finds the tenant that the request's member `key` names. Returns -EPERM if the caller may not change that tenant. */
int session_find_own(struct session *session, const json_t *request, const char *key,
		     struct tenant **ret, struct error *err);
