/*
 * Events: what `kubectl describe` shows of an object beside its state. They are told once and forgotten:
 * whether one arrives is nobody's concern. The client's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/client.h"

struct event_about {
	const char *kind; /* "Pod", "Node" */
	const char *name, *uid;
	const char *in_namespace; /* NULL: it has none, as a node */
};

/* Tells an event of allotd's. `reason`: one word, such as "AllocateFailed". `host`: the node's name. */
void event_tell(struct kube_client *client, const struct event_about *about, bool is_warning,
		const char *reason, const char *message, const char *host);
/* The same of another program's. `host` NULL: it is of no node. */
void event_tell_as(const char *component, struct kube_client *client,
		   const struct event_about *about, bool is_warning, const char *reason,
		   const char *message, const char *host);

/* ---- events that come again ---- */

#define EVENT_NAME_MAX 254

struct event_text {
	bool is_warning;
	const char *reason, *message;
	const char *host; /* NULL: it is of no node */
};

/* One that no other event of the object has. */
void event_make_name(const struct event_about *about, char ret[EVENT_NAME_MAX]);
/* The first time; what the server answers is told. NULL: no memory, and nobody is told. */
struct kube_call *event_create(const char *component, struct kube_client *client,
			       const struct event_about *about, const struct event_text *text,
			       const char *name, kube_done done, void *data);
/* The same again: it has come so often by now, and may say something else. 404 once the server has forgotten it. */
struct kube_call *event_repeat(struct kube_client *client, const struct event_about *about,
			       const char *message, const char *name, uint64_t count,
			       kube_done done, void *data);
