/*
 * Sends Kubernetes events, which `kubectl describe` shows beside an object's state. event_send() sends an event once, and only
 * logs a failure. Use from the client's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/kube_client.h"

struct event_about {
	const char *kind;
	const char *name, *uid;
	const char *in_namespace; /* NULL for an object without a namespace, such as a node */
};

/* Sends an event of allotd. `reason` is one word, such as "AllocateFailed". `host` is the node's name. */
void event_send(struct kube_client *client, const struct event_about *about, bool is_warning,
		const char *reason, const char *message, const char *host);
/* For the program `component` instead of allotd. `host` is NULL if no node is concerned. */
void event_send_as(const char *component, struct kube_client *client,
		   const struct event_about *about, bool is_warning, const char *reason,
		   const char *message, const char *host);

#define EVENT_NAME_MAX 254

struct event_text {
	bool is_warning;
	const char *reason, *message;
	const char *host; /* NULL if no node is concerned */
};

/* Makes a name that no other event of the object has. */
void event_make_name(const struct event_about *about, char ret[EVENT_NAME_MAX]);
/* Creates an event that event_repeat() may repeat. Returns NULL if out of memory, without calling `done`. */
struct kube_call *event_create(const char *component, struct kube_client *client,
			       const struct event_about *about, const struct event_text *text,
			       const char *name, kube_done done, void *data);
/* The event has occurred again: sets its count and message. `done` gets status 404 if the server has deleted the event. */
struct kube_call *event_repeat(struct kube_client *client, const struct event_about *about,
			       const char *message, const char *name, uint64_t count,
			       kube_done done, void *data);
