/*
 * The mutating webhook: what becomes of a pod that asks for GPUs before it is stored (kubernetes.io, "AdmissionReview v1").
 * What it asks is completed and checked, in HAMi's vocabulary and in gpu-manager's; it gets the scheduler's name;
 * what would get round the library is dealt with as the operator says. What is wrong is denied with what would be right.
 * Where a DeviceClass is set, the pod asks by ResourceClaims instead (webhook_claims.c), and the cluster's own scheduler places it.
 * Pure; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/request/quota.h"

/* On a pod, where the operator lets them; on a namespace the webhook's configuration has to look for it. */
#define WEBHOOK_LABEL "allot.dev/webhook"
#define WEBHOOK_LABEL_HAMI "hami.io/webhook"
#define WEBHOOK_IGNORE "ignore"

/* On ResourceClaimTemplates that pods are turned to. */
#define WEBHOOK_LABEL_MANAGED "app.kubernetes.io/managed-by"
#define WEBHOOK_MANAGER "allot-scheduler"

/* Of what gets round the library. */
enum webhook_guard { GUARD_ALLOW, GUARD_WARN, GUARD_REWRITE, GUARD_DENY };

/* What a namespace may have, and has. */
struct webhook_quota {
	struct quota_limits limits;
	struct quota_amounts used;
};

/* Texts are the caller's. Lists are separated by commas, and their items are patterns of fnmatch(3). */
struct webhook_terms {
	const char *scheduler; /* what pods get for a schedulerName */
	bool is_forced;        /* also those that name another */
	/* The resources' names. */
	const char *gpu, *memory, *memory_pct, *cores, *priority;
	const char *vcuda_cores, *vcuda_memory;
	/* Where a container says nothing of it; 0: nothing is said then, but of GPUs one. */
	unsigned default_gpus, default_cores;
	uint64_t default_memory_bytes;
	const char *runtime_class; /* for pods with GPUs that have none; "none" */
	bool needs_both;           /* memory and compute must be said */
	bool needs_estimate;       /* of duration, or of concurrency */
	enum webhook_guard environment, mounts, privileged;
	bool guards_others;     /* pods that ask for no GPU as well */
	const char *images;     /* those that containers with GPUs may have: a list */
	const char *namespaces; /* those that are let alone: a list, or "none" */
	bool has_opt_out;       /* a pod's label counts */
	/* Pods that ask for GPUs in their limits get ResourceClaims of this DeviceClass instead; NULL: they do not. */
	const char *device_class;
	/* False: nothing is known of that namespace. NULL: of none. */
	bool (*quota)(void *data, const char *name, struct webhook_quota *ret);
	void *data;
};

/* Of a review, where there is a device_class. */
struct webhook_claims {
	const json_t *sizes_mib; /* in: dra_add_memory_sizes() of the cluster; NULL: not known */
	bool needs_sizes; /* out: they have to be known: the response is none, and it is to be reviewed again */
	/* in: an empty list. out: ResourceClaimTemplates that have to be there before the response is given. */
	json_t *templates;
};

/*
 * The review with its response; a new object. NULL: it is no review that could be answered (-EINVAL), or there is no memory
 * (-ENOMEM); err says so. `claims`: not NULL where there is a device_class.
 */
json_t *webhook_review(const struct webhook_terms *terms, const json_t *review,
		       struct webhook_claims *claims, struct error *err);

/* A review that webhook_review() has taken, with a response that denies, for this reason. NULL: no memory. */
json_t *webhook_deny(const json_t *review, const struct error *why);
