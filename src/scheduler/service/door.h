/*
 * Who may ask allot-scheduler for what: by a certificate that client_ca vouches for, which verbs of client_verbs need; by the
 * token of token_file, which lets people and Prometheus in to explanations and metrics as well. Main thread only.
 */
#ifndef ALLOT_SCHEDULER_SERVICE_DOOR_H
#define ALLOT_SCHEDULER_SERVICE_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "http/server.h"

enum door_verb {
	DOOR_WEBHOOK,
	DOOR_FILTER,
	DOOR_PRIORITIZE,
	DOOR_PREEMPT,
	DOOR_BIND,
	DOOR_EXPLAIN,
	DOOR_METRICS,
	DOOR_VERBS,
	DOOR_OPEN = DOOR_VERBS /* for everybody, as those who look whether it lives */
};

struct door {
	unsigned verbs;         /* a bit each: a certificate is needed. 0: of none */
	const char *names;      /* peer.h. Texts are the caller's */
	bool is_local_trusted;  /* who asks without TLS needs none */
	const char *token_file; /* NULL: there is none */
	uint64_t said_ns;       /* a refusal, in the log; 0: not yet */
};

/* "bind, filter", or "none": a bit each. -EINVAL with what would be right. Pure. */
int door_parse(const char *list, unsigned *ret_verbs, struct error *err);

/* 0: let in. Else the status to answer with, 401, 403 or 503, and why. */
unsigned door_check(struct door *door, enum door_verb verb, const struct server_request *request,
		    struct error *err);

#endif
