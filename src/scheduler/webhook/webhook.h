/*
 * The mutating webhook, which changes pods that request GPUs before they are stored (kubernetes.io, "AdmissionReview v1"). The
 * webhook completes and checks requests in the vocabularies of HAMi and gpu-manager, and sets the scheduler's name. The operator
 * configures the treatment of settings that would bypass the library. A denial says what would be right.
 * If a DeviceClass is set, the webhook turns requests into ResourceClaims (webhook_claims.c), and the cluster's default
 * scheduler places the pod. Pure; thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/request/quota.h"

/*
 * Label by which a pod opts out of the webhook, if the operator permits that. The same label on a namespace works only through
 * the selector of the webhook's configuration.
 */
#define WEBHOOK_LABEL "allot.dev/webhook"
#define WEBHOOK_LABEL_HAMI "hami.io/webhook"
#define WEBHOOK_IGNORE "ignore"

/* Label of the ResourceClaimTemplates that the webhook creates. */
#define WEBHOOK_LABEL_MANAGED "app.kubernetes.io/managed-by"
#define WEBHOOK_MANAGER "allot-scheduler"

/* What to do with a setting that bypasses the library. */
enum webhook_guard { GUARD_ALLOW, GUARD_WARN, GUARD_REWRITE, GUARD_DENY };

/* The limits and the usage of a namespace. */
struct webhook_quota {
	struct quota_limits limits;
	struct quota_amounts used;
};

/* The caller owns the strings. Lists are separated by commas, and their items are fnmatch(3) patterns. */
struct webhook_terms {
	const char *scheduler; /* the schedulerName that pods get */
	bool is_forced;        /* pods that name another scheduler get it too */
	/* Names of the extended resources. */
	const char *gpu, *memory, *memory_pct, *cores, *priority;
	const char *vcuda_cores, *vcuda_memory;
	/* Defaults for containers that name no value. If 0, there is no default, except that the number of GPUs is then 1. */
	unsigned default_gpus, default_cores;
	uint64_t default_memory_bytes;
	const char *runtime_class; /* runtime class for GPU pods without one; or "none" */
	bool needs_both;           /* containers must request both memory and compute */
	bool needs_estimate;       /* pods must estimate their duration or concurrency */
	enum webhook_guard environment, mounts, privileged;
	bool guards_others;     /* the guards apply also to pods without GPU requests */
	const char *images;     /* list of images that containers with GPUs may use */
	const char *namespaces; /* list of namespaces to ignore, or "none" */
	bool has_opt_out;       /* pods may opt out by label */
	/* Turn GPU limits of pods into ResourceClaims of this DeviceClass. If NULL, do not create claims. */
	const char *device_class;
	/* Writes a namespace's quota to *ret; returns false if unknown. The pointer is NULL if quotas are not checked. */
	bool (*quota)(void *data, const char *name, struct webhook_quota *ret);
	void *data;
};

/* Data of a review for claims; used only if the terms have a device_class. */
struct webhook_claims {
	const json_t *sizes_mib; /* in: the cluster's card sizes, from dra_add_memory_sizes(); NULL if unknown */
	bool needs_sizes; /* out: the review needs sizes_mib. There is no response; review again with sizes_mib. */
	/* in: an empty list. out: ResourceClaimTemplates that the caller must create before it sends the response. */
	json_t *templates;
};

/*
 * Returns a new object: the review with its response. Returns NULL and sets err if the review cannot be answered (-EINVAL) or
 * memory runs out (-ENOMEM). `claims` must not be NULL if the terms have a device_class.
 */
json_t *webhook_review(const struct webhook_terms *terms, const json_t *review,
		       struct webhook_claims *claims, struct error *err);

/*
 * Builds the answer that denies a review, for this reason. webhook_review() must have accepted the review. Returns NULL if
 * memory runs out.
 */
json_t *webhook_deny(const json_t *review, const struct error *why);
