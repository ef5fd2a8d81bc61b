/*
 * What the API server says of nodes, pods and quotas, for the model: a watch each, begun anew where it breaks off. Pods that
 * have ended are not asked for: their end comes as if they were gone. Who may not list ResourceQuotas goes on without,
 * and asks again: an older installation's rights have none. The client's thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "kube/client/client.h"
#include "kube/client/watch.h"
#include "scheduler/model/model.h"

struct feed;

struct feed_terms {
	struct kube_client *client; /* both must be there, longer than the feed */
	struct model *model;
	void (*ready)(void *data); /* once, when all lists have been complete; NULL: not wanted */
	void (*node)(void *data,
		     const json_t *node); /* there, or changed, after the model knows it; NULL as well */
	void *data;
};

/* -ENOMEM. */
int feed_start(const struct feed_terms *terms, struct feed **ret);
struct feed *feed_stop(struct feed *feed); /* NULL is fine; returns NULL */

/* Have all lists been complete once? What they say may be old since: feed_is_troubled(). */
bool feed_is_ready(const struct feed *feed);
/* One of the watches fails, and is begun again and again. */
bool feed_is_troubled(const struct feed *feed);
