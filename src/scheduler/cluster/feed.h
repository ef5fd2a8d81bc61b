/*
 * Feeds the model with nodes, pods and quotas from the API server, by one watch each. A watch that breaks off is started
 * again. Pods that have ended are excluded from the watch, so their end is reported like a deletion. If listing
 * ResourceQuotas is forbidden, as by the roles of older installations, the feed continues without quotas and tries again.
 * Call from the client's thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "kube/client/kube_client.h"
#include "kube/client/watch.h"
#include "scheduler/model/model.h"

struct feed;

struct feed_terms {
	struct kube_client *client; /* the client and the model must outlive the feed */
	struct model *model;
	void (*ready)(void *data); /* called once, when all lists have been complete; may be NULL */
	void (*node)(void *data,
		     /* Called for a new or changed node, after the model was updated; may be NULL. */
		     const json_t *node);
	void *data;
};

/* Returns 0 or -ENOMEM. */
int feed_start(const struct feed_terms *terms, struct feed **ret);
struct feed *feed_stop(struct feed *feed); /* `feed` may be NULL; returns NULL */

/* Returns true once the lists of nodes, pods and quotas have been complete. They may be old by now: see feed_is_troubled(). */
bool feed_is_ready(const struct feed *feed);
/* Returns true while a watch fails and is being started again. */
bool feed_is_troubled(const struct feed *feed);
