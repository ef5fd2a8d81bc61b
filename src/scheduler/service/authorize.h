/*
 * Decides which client may use which verb of allot-scheduler. The verbs in the setting client_verbs need a client certificate
 * from client_ca. If token_file is set, explanations and metrics need its token, because people and Prometheus request these; a
 * certificate suffices instead if client_verbs has the verb. Main thread only.
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
	AUTHORIZE_OPEN = AUTHORIZE_VERBS /* open to all: health checks */
};

struct authorizer {
	unsigned verbs; /* bits of verbs that need a certificate */
	/* patterns of the names that client certificates may have; owned by the caller */
	const char *names;
	bool is_local_trusted;  /* clients without TLS need neither certificate nor token */
	const char *token_file; /* NULL if there is none */
	uint64_t logged_ns;     /* when a refusal was logged last; 0: never */
};

/* Parses a list of verbs, such as "bind, filter", or "none", into bits. On -EINVAL, err says what would be right. Pure. */
int authorize_parse(const char *list, unsigned *ret_verbs, struct error *err);

/* Returns 0 if the client may use the verb, otherwise the HTTP status (401, 403, 503); err then says why. */
unsigned authorize(struct authorizer *authorizer, enum authorize_verb verb,
		   const struct server_request *request, struct error *err);
