/*
 * Follows all objects of one kind that match a selector: lists them in pages, then watches for changes. A watch that ends is
 * resumed at the resourceVersion that it had reached; after 410 (the server no longer knows that version) the objects are
 * listed again. Never gives up; waits longer after each failure. Use from the client's thread only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/client/kube_client.h"

/* Each callback may stop the watch; then no more are called. The watch owns the objects: take a reference to keep one. */
struct watch_handlers {
	/* a list begins; objects that the list has not delivered by the call of `synced` no longer exist */
	void (*list_begun)(void *data);
	void (*object)(void *data, json_t *object);
	/* `object` is the deleted object's last state */
	void (*deleted)(void *data, json_t *object);
	void (*synced)(void *data);
	/* after a failed try (another follows by itself), and with `err` NULL when the watch works again */
	void (*failed)(void *data, const struct error *err);
};

struct kube_watch;

/* `collection`: "/api/v1/pods"; `selector`: "fieldSelector=spec.nodeName%3Dn1", or "". NULL if out of memory. */
struct kube_watch *kube_watch_start(struct kube_client *client, const char *collection,
				    const char *selector, const struct watch_handlers *handlers,
				    void *data);
struct kube_watch *kube_watch_stop(struct kube_watch *watch); /* NULL is allowed; returns NULL */
