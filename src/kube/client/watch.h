/*
 * All objects of one kind that match a selector, kept up to date: a list in pages, then a watch from there,
 * begun again where it broke off; where the server no longer knows that place (410), a list again. It never
 * gives up: between tries it waits longer and longer. The client's thread.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/client/client.h"

/*
 * What is told to the owner, who may stop the watch in any of them but `gone` and `object`. Objects are
 * the watch's: to be kept, take a reference.
 */
struct watch_handlers {
	void (*begin)(void *data); /* a list follows: what it does not name is gone */
	void (*object)(void *data, json_t *object); /* is there, or has changed */
	void (*gone)(void *data, json_t *object);   /* its last state */
	void (*synced)(void *data);                 /* the list is complete */
	/* A try failed; the next comes by itself. NULL: a fault that was told is over. */
	void (*trouble)(void *data, const struct error *err);
};

struct kube_watch;

/* `collection`: "/api/v1/pods"; `selector`: "fieldSelector=spec.nodeName%3Dn1", or "". NULL: no memory. */
struct kube_watch *kube_watch_start(struct kube_client *client, const char *collection,
				    const char *selector, const struct watch_handlers *handlers,
				    void *data);
struct kube_watch *kube_watch_stop(struct kube_watch *watch); /* NULL is fine; returns NULL */
