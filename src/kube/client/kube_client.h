/*
 * A client of the Kubernetes API. Calls run in the background, over HTTPS. The client has one descriptor: an event loop watches
 * it for EPOLLIN and then calls kube_client_process(), which never waits for the server. Use a client from one thread only.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/client/api_access.h"
#include "kube/client/reactor.h"

#define KUBE_CALL_TIMEOUT_NS (UINT64_C(30) * 1000000000)
#define KUBE_BODY_MAX (16u << 20) /* most bytes of an answer, or of one line of it */

struct kube_client;
struct kube_call;

struct kube_request {
	const char *method;
	const char *path; /* with the query */
	const char *type; /* content type of the body; NULL if there is no body */
	const char *body;
	uint64_t timeout_ns; /* 0 means KUBE_CALL_TIMEOUT_NS */
	/* A bearer token for a service behind the API server's proxy, which drops the Authorization header; or NULL. */
	const char *proxied_token;
};
/* the header of proxied_token: docs/reference/protocol.md */
#define KUBE_PROXIED_AUTHORIZATION "X-Allot-Authorization"

#define HTTP_NOT_FOUND 404
#define HTTP_CONFLICT 409
#define HTTP_TOO_MANY_REQUESTS 429

struct kube_answer {
	int status; /* 0 if there was no answer */
	/* NULL if there is none. Valid only during `done`; take a reference to keep it. */
	json_t *object;
	size_t bytes;            /* size of the answer, without the lines that a kube_line got */
	uint64_t retry_after_ns; /* 0 if the server gave no time */
	/* err.code is 0 if the status is 2xx and the answer is JSON; EFBIG if the answer exceeds KUBE_BODY_MAX */
	struct error err;
};

typedef void (*kube_done)(void *data, const struct kube_answer *answer);
/* Called for each line of the answer, a JSON object; first with NULL, which says that the status is 2xx. */
typedef void (*kube_line)(void *data, json_t *object);

/* The caller keeps `access` valid for the client's life. Returns -ENOENT if there is no libcurl. */
int kube_client_new(const struct kube_access *access, struct kube_client **ret, struct error *err);
/* Drops the client's calls without calling their handlers. NULL is allowed. Returns NULL. */
struct kube_client *kube_client_free(struct kube_client *client);

int kube_client_fd(const struct kube_client *client);
/* Does the pending work. Only this function calls handlers (kube_done, kube_line, alarms). */
void kube_client_process(struct kube_client *client);
struct reactor *kube_client_reactor(struct kube_client *client);

/*
 * Starts a call. `done` is called once, also for errors, unless the call is dropped. If `line` is set, it gets a 2xx answer
 * line by line, and `done` gets no object. Returns NULL if out of memory.
 */
struct kube_call *kube_call_start(struct kube_client *client, const struct kube_request *request,
				  kube_line line, kube_done done, void *data);
/* Drops a call before its end. Any handler may do this. NULL is allowed. Returns NULL. */
struct kube_call *kube_call_drop(struct kube_call *call);

#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_JSON "application/json"
