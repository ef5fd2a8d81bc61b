/*
 * Admission reviews of pods that get ResourceClaims. Such a pod names ResourceClaimTemplates. The webhook creates the templates
 * before it answers, so that no pod names a missing template. A template's name is derived from its content, so pods of a
 * namespace with equal requests share a template. A dry run creates nothing. If a pod is rejected later, its template stays for
 * the next pod. Not thread-safe.
 */
#pragma once

#include <jansson.h>

#include "kube/client/kube_client.h"
#include "scheduler/webhook/webhook.h"

struct claim_reviews;

/* Prepares for reviews. The client and the terms belong to the caller, and must outlive the result. NULL if memory runs out. */
struct claim_reviews *claim_reviews_new(struct kube_client *client,
					const struct webhook_terms *terms);
/* Drops all pending reviews without calling `done`. Call before the client is freed. `reviews` may be NULL; returns NULL. */
struct claim_reviews *claim_reviews_free(struct claim_reviews *reviews);

/* Receives the answer to a review, which is like a result of webhook_review(); frees it. NULL: memory ran out. */
typedef void (*claim_reviewed)(void *data, json_t *answer);

/*
 * Starts a review. Returns 0 if *ret_answer is the answer already. Returns 1 if the API server must be asked first: `done` is
 * then called once, later. Returns -EINVAL or -ENOMEM as webhook_review() does. Takes a reference to `review`.
 */
int claim_reviews_start(struct claim_reviews *reviews, json_t *review, claim_reviewed done,
			void *data, json_t **ret_answer, struct error *err);
