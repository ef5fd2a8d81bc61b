/* The handlers of the control protocol's requests (docs/reference/protocol.md), one per `op`. Main thread only. */
#pragma once

#include "daemon/api/session.h"

/* Each adds the reply's members to `reply`, or returns -errno. */
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
int request_space(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_remove(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_trace(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_trace_poll(struct session *session, const json_t *request, json_t *reply,
		       struct error *err);
int request_trace_end(struct session *session, const json_t *request, json_t *reply,
		      struct error *err);
int request_claim(struct session *session, const json_t *request, json_t *reply, struct error *err);
int request_injection(struct session *session, const json_t *request, json_t *reply,
		      struct error *err);
int request_release(struct session *session, const json_t *request, json_t *reply,
		    struct error *err);
int request_claims(struct session *session, const json_t *request, json_t *reply, struct error *err);

/* Adds the tenant's id, name, socket and devices to the reply. */
void request_describe_tenant(const struct tenant *tenant, json_t *reply);
/* Logs, and adds to the reply, each device whose guarantees are scaled down because their sum is too large. */
void request_warn_of_overcommit(const struct tenant *tenant, json_t *reply);
