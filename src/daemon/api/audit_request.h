/*
 * Requests of the control protocol in the audit log: each that changes something when it is done, with what was before,
 * and each of them that its caller had no right to. Main thread only.
 */
#ifndef ALLOT_DAEMON_API_AUDIT_REQUEST_H
#define ALLOT_DAEMON_API_AUDIT_REQUEST_H

#include "daemon/api/audit/audit.h"
#include "daemon/api/session.h"

struct audit_request {
	const char *op; /* NULL: not one that is written down */
	char id[TENANT_ID_MAX];
	json_t *old;  /* its tenant's terms before; NULL: it had none */
	json_t *what; /* the line's, as far as it is known by then */
};

/* Before it is dispatched; what is done until audit_request_end() is the caller's doing. */
void audit_request_begin(struct session *session, const json_t *request, struct audit_request *ret);
/* `r`, `err`, `reply`: what became of it. */
void audit_request_end(struct session *session, struct audit_request *of, int r,
		       const struct error *err, const json_t *reply);

#endif
