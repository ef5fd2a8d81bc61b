/*
 * What a namespace's pods may have of the cluster's cards together: the limits of its ResourceQuota objects, under HAMi's keys.
 *
 *     limits.nvidia.com/gpumem: 20000      MiB; a percentage or a whole card counts what it has got
 *     limits.nvidia.com/gpucores: 300      percent of a card's time
 *     limits.nvidia.com/gpu: 4             shares of cards. Kubernetes holds nobody to it, nor does HAMi
 *     requests.nvidia.com/gpumem, gpucores     the same: Kubernetes itself counts only what is written in a pod, once a container
 *
 * requests.nvidia.com/gpu is left to Kubernetes, which counts just that. Pure; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/request/request.h"

enum quota_kind { QUOTA_MEMORY /* MiB */, QUOTA_CORES /* percent */, QUOTA_GPUS, QUOTA_KINDS };

struct quota_amounts {
	uint64_t of[QUOTA_KINDS];
};

struct quota_limits {
	bool has[QUOTA_KINDS]; /* else there is none */
	uint64_t most[QUOTA_KINDS];
};

/* The resource that it is about: of the terms. */
const char *quota_resource(const struct request_terms *terms, enum quota_kind kind);

/* Of a ResourceQuota; where it says nothing of cards, none. -EINVAL: a limit that is no whole number, or less than 0. */
int quota_read(const json_t *object, const struct request_terms *terms, struct quota_limits *ret,
	       struct error *err);

/* Of both the lesser. */
void quota_tighten(struct quota_limits *limits, const struct quota_limits *by);
/* What is left of them, beside what is used. */
struct quota_limits quota_left(const struct quota_limits *limits, const struct quota_amounts *used);
bool quota_is_any(const struct quota_limits *limits);
/* So much is not too much. */
bool quota_allows(const struct quota_limits *limits, const struct quota_amounts *amounts);
/* Something is not too much for `limits` that may be for `before`. */
bool quota_is_wider(const struct quota_limits *limits, const struct quota_limits *before);

void quota_add(struct quota_amounts *to, const struct quota_amounts *by);
void quota_subtract(struct quota_amounts *from, const struct quota_amounts *by);
