/*
 * Reviews pods that get ResourceClaims. Such a pod names ResourceClaimTemplates, which the webhook creates before it answers
 * the review. A template's name is a digest of its content, so equal requests in a namespace share one template. A dry run
 * creates none. If the pod is rejected later, the template stays for later pods. Not thread-safe.
 */
#pragma once

#include <jansson.h>

#include "kube/client/kube_client.h"
#include "scheduler/webhook/webhook.h"

struct claim_reviews;

/* The client and the terms must outlive the result. NULL if memory runs out. */
struct claim_reviews *claim_reviews_new(struct kube_client *client,
					const struct webhook_terms *terms);
/* Drops pending reviews without calling `done`. Call before the client is freed. NULL is allowed; returns NULL. */
struct claim_reviews *claim_reviews_free(struct claim_reviews *reviews);

/* Callback that gets a review's answer, in the format of webhook_review(), and must free it. NULL if memory ran out. */
typedef void (*claim_reviewed)(void *data, json_t *answer);

/*
 * Starts a review. 0: *ret_answer is the answer. 1: the API server is asked first, and `done` is called once, later. -EINVAL or
 * -ENOMEM as by webhook_review(). Takes a reference to `review`.
 */
int claim_reviews_start(struct claim_reviews *reviews, json_t *review, claim_reviewed done,
			void *data, json_t **ret_answer, struct error *err);
