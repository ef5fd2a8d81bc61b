/*
 * The handlers of the control protocol's requests (docs/reference/protocol.md): one for each `op`. Main thread only.
 */
#pragma once

#include "daemon/api/session.h"

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
