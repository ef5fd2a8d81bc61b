/*
 * A client of the Kubernetes API: calls that go on in the background, over HTTPS. Everything is done behind
 * one descriptor: whoever has an event loop watches that for EPOLLIN, and calls kube_client_process() then,
 * which never waits for the server. One thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/client/access.h"
#include "kube/client/reactor.h"

#define KUBE_CALL_TIMEOUT_NS (UINT64_C(30) * 1000000000)
#define KUBE_BODY_MAX (16u << 20) /* bytes of an answer, or of one event */

struct kube_client;
struct kube_call;

struct kube_request {
	const char *method; /* "GET", "PATCH", "POST", "DELETE" */
	const char *path;   /* with its query */
	const char *type;   /* of the body; NULL: there is none */
	const char *body;
	uint64_t timeout_ns; /* 0: KUBE_CALL_TIMEOUT_NS */
	/* For who is asked through the server's proxy, which keeps Authorization to itself: a bearer token. NULL: none. */
	const char *proxied_token;
};
#define KUBE_PROXIED_AUTHORIZATION "X-Allot-Authorization" /* docs/reference/protocol.md */

struct kube_answer {
	int status;     /* of HTTP; 0: there was no answer */
	json_t *object; /* NULL: none, or the call failed. The caller's: to be kept, take a reference */
	size_t bytes;            /* of the answer, as far as it was read */
	uint64_t retry_after_ns; /* 0: the server did not say */
	struct error err; /* code 0: the status is one of 2xx; EFBIG: more than KUBE_BODY_MAX came */
};

typedef void (*kube_done)(void *data, const struct kube_answer *answer);
/* One line of the answer, a JSON object each, as a watch's events are; before the first NULL, once it is known
 * that the answer is a good one. */
typedef void (*kube_line)(void *data, json_t *object);

/* `access` stays the caller's, and valid. -ENOENT: there is no libcurl; -ENOMEM. */
int kube_client_new(const struct kube_access *access, struct kube_client **ret, struct error *err);
/* Calls under way are dropped: their handlers are not called. NULL is fine; returns NULL. */
struct kube_client *kube_client_free(struct kube_client *client);

int kube_client_fd(const struct kube_client *client);
/* Handlers are called in here, and nowhere else. */
void kube_client_process(struct kube_client *client);
/* For alarms of the same thread. */
struct reactor *kube_client_reactor(struct kube_client *client);

/*
 * Starts a call. `done` is called once, unless the call is dropped before; errors too come there. With `line`
 * the answer of a good call goes there, line by line, and `object` is NULL at its end. NULL: no memory.
 */
struct kube_call *kube_call_start(struct kube_client *client, const struct kube_request *request,
				  kube_line line, kube_done done, void *data);
/* Drops a call before its end; from any handler. NULL is fine; returns NULL. */
struct kube_call *kube_call_drop(struct kube_call *call);

#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_JSON "application/json"
