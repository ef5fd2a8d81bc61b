/*
 * Decides which client may use which verb of allot-scheduler. The verbs in client_verbs need a certificate that client_ca
 * vouches for. The token of token_file also gives access to explanations and metrics, for people and Prometheus. Call from
 * the main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "http/http_server.h"

enum authorize_verb {
	AUTHORIZE_WEBHOOK,
	AUTHORIZE_FILTER,
	AUTHORIZE_PRIORITIZE,
	AUTHORIZE_PREEMPT,
	AUTHORIZE_BIND,
	AUTHORIZE_EXPLAIN,
	AUTHORIZE_METRICS,
	AUTHORIZE_VERBS,
	AUTHORIZE_OPEN = AUTHORIZE_VERBS /* open to all, such as health checks */
};

struct authorizer {
	unsigned verbs; /* bit mask of verbs that need a certificate; 0 for none */
	/* Patterns of accepted names (authorize.c); strings belong to the caller. */
	const char *names;
	bool is_local_trusted;  /* clients without TLS need no certificate */
	const char *token_file; /* NULL if there is none */
	uint64_t said_ns;       /* when a refusal was last logged; 0 if never */
};

/*
 * Parses a list such as "bind, filter", or "none", into a bit mask. Returns -EINVAL if it is malformed; err says what would
 * be right. Pure.
 */
int authorize_parse(const char *list, unsigned *ret_verbs, struct error *err);

/* Returns 0 if the client may use the verb. Otherwise returns the HTTP status (401, 403 or 503); err says why. */
unsigned authorize(struct authorizer *authorizer, enum authorize_verb verb,
		   const struct server_request *request, struct error *err);
