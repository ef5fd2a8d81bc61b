/* Between the parts of the webhook: webhook.c has the review, webhook_ask.c what containers ask for, webhook_guard.c what would
 * get round the library, webhook_strip.c what only schedulers write, webhook_workload.c presets and estimates, webhook_claims.c
 * what becomes ResourceClaims. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/webhook/json_patch.h"

struct webhook_claims;
struct webhook_terms;

/* In the order of webhook_ask.c's rows. */
enum webhook_resource {
	ASK_GPU,
	ASK_MEMORY,
	ASK_MEMORY_PCT,
	ASK_CORES,
	ASK_PRIORITY,
	ASK_VCUDA_CORES,
	ASK_VCUDA_MEMORY,
	ASK_COUNT
};

const char *webhook_resource_name(const struct webhook_terms *terms, enum webhook_resource resource);

struct webhook_container {
	json_t *object;   /* within the pod */
	const char *name; /* the pod's; "" where it has none */
	char path[40];    /* as a patch has it */
	bool is_init;
	bool has[ASK_COUNT]; /* its limits, or its requests, name it */
	int64_t value[ASK_COUNT];
	bool is_asking; /* for a GPU, or a part of one */
};

/* A review under way. What is denied is in err, as one line. */
struct webhook_work {
	const struct webhook_terms *terms;
	struct webhook_claims *claims; /* where the terms have a device_class */
	json_t *pod;                   /* a copy, which is changed */
	const char *pod_namespace;
	struct json_patch patch;
	json_t *warnings;
	struct webhook_container *container; /* init containers first */
	size_t containers;
	struct error *err;
};

/* Takes off what only schedulers and daemons write (docs/reference/protocol.md), with a warning each. */
void webhook_strip(struct webhook_work *w);

/* These return 0; -EACCES: not allowed; -EINVAL: what stands in the pod is wrong; err names it and what would be right. */

/* What each container asks for, as it stands there; of all of them, also where one is wrong. */
int webhook_read_asks(struct webhook_work *w);
/* Counts, defaults, bytes in units, priority; then whether it is consistent, and within the namespace's quota. */
int webhook_complete_asks(struct webhook_work *w);
/* Environment, mounts, privilege, images. `is_ours`: the pod asks for GPUs and is for our scheduler. */
int webhook_guard(struct webhook_work *w, bool is_ours);
/* allot.dev/workload, allot.dev/duration, allot.dev/concurrency. */
int webhook_apply_workload(struct webhook_work *w);

/*
 * The limits become claims; after webhook_complete_asks(). -ENODATA without a word: claims->needs_sizes. Its container's name is
 * that of a claim in the pod.
 */
int webhook_make_claims(struct webhook_work *w);

/* For whoever made the pod. */
void webhook_warn(struct webhook_work *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A text among the pod's metadata, `kind` labels or annotations. NULL: none. */
const char *webhook_meta(const struct webhook_work *w, const char *kind, const char *name);
/* Does one pattern of the list fit? */
bool webhook_is_listed(const char *list, const char *text);
