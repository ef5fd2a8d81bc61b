/* Between client.c, which drives libcurl and hands out what came, and call.c, which is one call. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/error.h"
#include "kube/client/access.h"
#include "kube/client/curl.h"
#include "kube/client/reactor.h"

struct kube_answer;

struct kube_client {
	const struct curl *curl;
	const struct kube_access *access;
	struct reactor *reactor;
	struct alarm curl_alarm;
	CURLM *multi;
	TAILQ_HEAD(, kube_call) calls;
	uint64_t next_id;
};

struct kube_call {
	struct kube_client *client;
	uint64_t id; /* an address may be another call's, later */
	CURL *easy;
	struct curl_slist *headers;
	char *body;
	char what[160]; /* "GET /api/v1/...", for errors */
	char why[CURL_ERROR_SIZE];
	char *text; /* what came, not yet taken */
	size_t size, room;
	struct error failed;                      /* by us: ends the call */
	void (*line)(void *data, json_t *object); /* kube_line */
	bool is_good;                             /* `line` knows that the answer is a good one */
	void (*done)(void *data, const struct kube_answer *answer); /* kube_done */
	void *data;
	struct alarm refused; /* the call could not begin: told from process() as well */
	TAILQ_ENTRY(kube_call) link;
};

/* Of HTTP; 0: nothing has come yet. */
int call_status(const struct kube_call *call);
/* Gives `done` the answer; the call is no more. `result`: curl's. */
void call_finish(struct kube_call *call, int result);
