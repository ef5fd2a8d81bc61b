/*
 * Feeds the model with nodes, pods and quotas, by one watch each. Pods that have ended are left out, so their end looks like a
 * deletion. If the server forbids listing ResourceQuotas (roles of older installations do), continues without quotas and
 * retries. Call from the client's thread.
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
	struct kube_client *client; /* must outlive the feed, as must the model */
	struct model *model;
	void (*ready)(void *data); /* called once, when feed_is_ready() becomes true; may be NULL */
	/* called for a new or changed node, after the model was updated; may be NULL */
	void (*node)(void *data, const json_t *node);
	void *data;
};

/* Returns 0 or -ENOMEM. */
int feed_start(const struct feed_terms *terms, struct feed **ret);
struct feed *feed_stop(struct feed *feed); /* `feed` may be NULL; returns NULL */

/* Whether nodes, pods and quotas have each been listed completely at least once. Forbidden quotas count as listed. */
bool feed_is_ready(const struct feed *feed);
