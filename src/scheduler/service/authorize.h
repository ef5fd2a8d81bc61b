/*
 * Who may ask allot-scheduler for what: by a certificate that client_ca vouches for, which verbs of client_verbs need; by the
 * token of token_file, which lets people and Prometheus in to explanations and metrics as well. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "http/server.h"

enum authorize_verb {
	AUTHORIZE_WEBHOOK,
	AUTHORIZE_FILTER,
	AUTHORIZE_PRIORITIZE,
	AUTHORIZE_PREEMPT,
	AUTHORIZE_BIND,
	AUTHORIZE_EXPLAIN,
	AUTHORIZE_METRICS,
	AUTHORIZE_VERBS,
	AUTHORIZE_OPEN = AUTHORIZE_VERBS /* for everybody, as those who look whether it lives */
};

struct authorizer {
	unsigned verbs;         /* a bit each: a certificate is needed. 0: of none */
	const char *names;      /* peer.h. Texts are the caller's */
	bool is_local_trusted;  /* who asks without TLS needs none */
	const char *token_file; /* NULL: there is none */
	uint64_t said_ns;       /* a refusal, in the log; 0: not yet */
};

/* "bind, filter", or "none": a bit each. -EINVAL with what would be right. Pure. */
int authorize_parse(const char *list, unsigned *ret_verbs, struct error *err);

/* 0: let in. Else the status to answer with, 401, 403 or 503, and why. */
unsigned authorize(struct authorizer *authorizer, enum authorize_verb verb,
		   const struct server_request *request, struct error *err);
