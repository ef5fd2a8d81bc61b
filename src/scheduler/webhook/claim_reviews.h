/*
 * Reviews of pods that get ResourceClaims. A pod names ResourceClaimTemplates, which are made before the review is answered, so
 * that no pod names one that can't be had. A template is called after its terms: the pods of a namespace that ask for the same
 * share one, nothing is made for a dry run, and what is made for a pod that is refused later serves the next. One thread.
 */
#pragma once

#include <jansson.h>

#include "kube/client/client.h"
#include "scheduler/webhook/webhook.h"

struct claim_reviews;

/* Both stay the caller's. NULL: no memory. */
struct claim_reviews *claim_reviews_new(struct kube_client *client,
					const struct webhook_terms *terms);
/* Nobody is told any more of those under way. Before the client's end. NULL is fine; returns NULL. */
struct claim_reviews *claim_reviews_free(struct claim_reviews *reviews);

/* As webhook_review() returns it; the handler's. NULL: no memory. */
typedef void (*claim_reviewed)(void *data, json_t *answer);

/*
 * 0: *ret_answer is the answer. 1: it needs the API server; `done` is called once, later. -EINVAL, -ENOMEM as webhook_review().
 * A reference to `review` is taken.
 */
int claim_reviews_start(struct claim_reviews *reviews, json_t *review, claim_reviewed done,
			void *data, json_t **ret_answer, struct error *err);
