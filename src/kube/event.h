/*
 * Events: what `kubectl describe` shows of an object beside its state. They are told once and forgotten:
 * whether one arrives is nobody's concern. The client's thread.
 */
#ifndef ALLOT_KUBE_EVENT_H
#define ALLOT_KUBE_EVENT_H

#include <stdbool.h>

#include "kube/client.h"

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

#endif
