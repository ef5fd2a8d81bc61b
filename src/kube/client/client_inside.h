/* Shared by kube_client.c, which drives libcurl and delivers answers, and call.c, which starts and ends one call. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/error.h"
#include "kube/client/api_access.h"
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
	uint64_t id; /* a later call may have the same memory address */
	CURL *easy;
	struct curl_slist *headers;
	char *body;
	char what[160]; /* such as "GET /api/v1/...", for errors */
	char why[CURL_ERROR_SIZE];
	char *text; /* received bytes that are not delivered yet */
	size_t size, room;
	struct error failed; /* found by this client, not by libcurl; ends the call */
	void (*line)(void *data, json_t *object); /* a kube_line */
	/* `line` was called with NULL, which tells that the status is 2xx */
	bool is_good;
	void (*done)(void *data, const struct kube_answer *answer); /* a kube_done */
	void *data;
	struct alarm refused; /* if the call could not start: gives `done` the error */
	TAILQ_ENTRY(kube_call) link;
};

/* 0 if nothing was received yet. */
int call_status(const struct kube_call *call);
/* Calls `done` with the answer and frees the call. `result` is libcurl's result code. */
void call_finish(struct kube_call *call, int result);
