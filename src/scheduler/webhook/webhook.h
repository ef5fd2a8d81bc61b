/*
 * The mutating webhook, which changes pods that request GPUs before they are stored (kubernetes.io, "AdmissionReview v1"). It
 * completes and checks requests in HAMi's or gpu-manager's names, and sets the scheduler. A pod's settings that would bypass
 * allot's library are treated as the operator configured (enum webhook_guard). A denial says what would be right. If the
 * operator names a DeviceClass, requests become ResourceClaims (webhook_claims.c), and the cluster's default scheduler places
 * the pod. No I/O; thread-safe if webhook_terms.quota is.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/request/quota.h"

/* Labels by which a pod opts out, if permitted. On a namespace, they work only by the selector in the webhook configuration. */
#define WEBHOOK_LABEL "allot.dev/webhook"
#define WEBHOOK_LABEL_HAMI "hami.io/webhook"
#define WEBHOOK_IGNORE "ignore"

/* Label of the webhook's ResourceClaimTemplates. */
#define WEBHOOK_LABEL_MANAGED "app.kubernetes.io/managed-by"
#define WEBHOOK_MANAGER "allot-scheduler"

/* The treatment of a setting that bypasses the library. */
enum webhook_guard { GUARD_ALLOW, GUARD_WARN, GUARD_REWRITE, GUARD_DENY };

struct webhook_quota {
	struct quota_limits limits;
	struct quota_amounts used;
};

/* The caller owns the strings. Lists are fnmatch(3) patterns separated by commas. */
struct webhook_terms {
	const char *scheduler; /* the schedulerName that pods get */
	bool is_forced;        /* pods that name another scheduler get this one too */
	/* Names of the extended resources. */
	const char *gpu, *memory, *memory_pct, *cores, *priority;
	const char *vcuda_cores, *vcuda_memory;
	/* Defaults for containers that name no value. 0: no default; default_gpus 0 means 1. */
	unsigned default_gpus, default_cores;
	uint64_t default_memory_bytes;
	const char *runtime_class; /* runtime class for GPU pods without one; or "none" */
	bool needs_both;           /* containers must request both memory and compute */
	enum webhook_guard environment, mounts, privileged;
	const char *host_paths; /* list of host paths that the guard `mounts` permits */
	bool guards_others;     /* the guards also apply to pods without GPU requests */
	const char *images;     /* list of images that containers with GPUs may use */
	const char *namespaces; /* list of namespaces to ignore, or "none" */
	bool has_opt_out;       /* pods may opt out by label */
	/* DeviceClass of the ResourceClaims that replace GPU limits; NULL: limits are not replaced */
	const char *device_class;
	/* Callback: writes the quota for cards of namespace `name`; false if none is known. NULL: quotas are not checked. */
	bool (*quota)(void *data, const char *name, struct webhook_quota *ret);
	void *data;
};

/* Further input and output of a review with a device_class. */
struct webhook_claims {
	/* in: memory sizes of the cluster's GPUs (dra_add_memory_sizes()); NULL if unknown */
	const json_t *sizes_mib;
	bool needs_sizes; /* out: the response is void: set sizes_mib and review again */
	/* in: empty. out: ResourceClaimTemplates to create before the response is sent */
	json_t *templates;
};

/* A new AdmissionReview with the response. NULL: err says why (-EINVAL, -ENOMEM). `claims`: NULL only without device_class. */
json_t *webhook_review(const struct webhook_terms *terms, const json_t *review,
		       struct webhook_claims *claims, struct error *err);

/* Returns an answer that denies the review's pod; NULL if memory runs out. Only for reviews that webhook_review() answered. */
json_t *webhook_deny(const json_t *review, const struct error *why);
