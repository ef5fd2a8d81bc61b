/*
 * Shared by the webhook's parts:
 *
 *   webhook.c            the review                 webhook_requests.c   requests
 *   webhook_guard.c      bypasses of the library    webhook_mounts.c     bypasses by volumes and mounts
 *   webhook_claims.c     ResourceClaims             webhook_spec.c       the claims' specs
 *   webhook_workload.c   presets, estimates         webhook_strip.c      annotations reserved for schedulers
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/webhook/json_patch.h"

/* size of a JSON Pointer to a part of a container */
#define WEBHOOK_PATH_SIZE 80
/* Prefix of the names of the webhook's ResourceClaimTemplates. */
#define WEBHOOK_TEMPLATES "allot-"

struct kube_pod;
struct request;
struct webhook_claims;
struct webhook_terms;

/* The resources that a container can request, in the order of the table rows in webhook_requests.c. */
enum webhook_resource {
	RESOURCE_GPU,
	RESOURCE_MEMORY,
	RESOURCE_MEMORY_PCT,
	RESOURCE_CORES,
	RESOURCE_PRIORITY,
	RESOURCE_VCUDA_CORES,
	RESOURCE_VCUDA_MEMORY,
	RESOURCE_COUNT
};

const char *webhook_resource_name(const struct webhook_terms *terms, enum webhook_resource resource);

struct webhook_container {
	json_t *object;   /* a part of the pod; borrowed */
	const char *name; /* string of the pod; "" if the container has no name */
	char path[40];    /* JSON Pointer within the pod */
	bool is_init, is_ephemeral;
	bool has[RESOURCE_COUNT]; /* the limits or requests name the resource */
	int64_t value[RESOURCE_COUNT];
	bool requests_gpu; /* requests a GPU or a share of one */
};

/* A review. `err` gets the reason of a denial. */
struct webhook_work {
	const struct webhook_terms *terms;
	struct webhook_claims *claims; /* used only with a device_class */
	json_t *pod;                   /* a copy, which the webhook changes */
	const json_t *old_pod;         /* the pod before the ephemeral containers were added */
	const char *pod_namespace;
	bool is_ephemeral; /* the review is of ephemeral containers that a running pod gets */
	struct json_patch patch;
	json_t *warnings;
	struct webhook_container *container; /* init containers first */
	size_t containers;
	struct error *err;
};

/* webhook_strip.c. Removes annotations that only schedulers and daemons may write (docs/reference/protocol.md), and warns. */
void webhook_strip(struct webhook_work *w);

/* The next five functions return 0, -EACCES (not allowed) or -EINVAL (malformed). `err` says what is wrong and what to do. */

/* Reads each container's request into w->container. A malformed request does not stop the reading. Does not change the pod. */
int webhook_read_requests(struct webhook_work *w);
/* Completes counts, defaults, units and priority; then checks all requests, also against the namespace's quota. */
int webhook_complete_requests(struct webhook_work *w);
/*
 * Checks environment, mounts, privileges and images of all containers; in a review of ephemeral containers, only of these.
 * `is_ours`: the pod requests GPUs from our scheduler.
 */
int webhook_guard(struct webhook_work *w, bool is_ours);
int webhook_guard_mounts(struct webhook_work *w);
/* Applies the annotation allot.dev/workload; refuses allot.dev/duration and allot.dev/concurrency. */
int webhook_apply_workload(struct webhook_work *w);

/*
 * Turns limits into claims, named as their containers, after webhook_complete_requests(). -ENODATA, without a text in `err`:
 * GPU sizes are missing, and claims->needs_sizes is set.
 */
int webhook_make_claims(struct webhook_work *w);
/* Returns -EINVAL if a ResourceClaim can't express the request; warns of annotations without effect. See webhook_spec.c. */
int webhook_check_sayable(struct webhook_work *w, const struct request *request);
/* webhook_spec.c. Makes the claim's spec for part `part` of the request, a new reference. -ENODATA as webhook_make_claims(). */
int webhook_make_spec(struct webhook_work *w, const struct kube_pod *pod,
		      const struct request *request, size_t part, json_t **ret);

void webhook_warn(struct webhook_work *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Returns a value in the pod's metadata ("labels" or "annotations"), or NULL. */
const char *webhook_meta(const struct webhook_work *w, const char *kind, const char *name);
