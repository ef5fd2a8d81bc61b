/*
 * Reads limits on the total of a namespace's shares of cards, from its ResourceQuota objects, with HAMi's keys:
 *
 *     limits.nvidia.com/gpumem: 20000      MiB; a percentage or a whole card counts as the memory that was assigned
 *     limits.nvidia.com/gpucores: 300      percent of a card's compute
 *     limits.nvidia.com/gpu: 4             shares of cards; neither Kubernetes nor HAMi enforces this key
 *     requests.nvidia.com/gpumem, gpucores     the same limits; Kubernetes enforces these keys too, but counts
 *                                              only the amounts that containers name
 *
 * requests.nvidia.com/gpu is not read, because Kubernetes itself enforces it exactly. No I/O and no global state.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/request/pod_request.h"

enum quota_kind { QUOTA_MEMORY /* MiB */, QUOTA_CORES /* percent */, QUOTA_GPUS, QUOTA_KINDS };

struct quota_amounts {
	uint64_t of[QUOTA_KINDS];
};

struct quota_limits {
	bool has[QUOTA_KINDS]; /* false: no limit */
	uint64_t most[QUOTA_KINDS];
};

const char *quota_resource(const struct request_terms *terms, enum quota_kind kind);

/* *ret has no limits if the ResourceQuota has none of the keys above. -EINVAL: a limit is negative or not a whole number. */
int quota_read(const json_t *object, const struct request_terms *terms, struct quota_limits *ret,
	       struct error *err);

/* Lowers each limit to the limit of `by`, if that is lower or *limits has none. */
void quota_tighten(struct quota_limits *limits, const struct quota_limits *by);
/* Returns the limits minus the usage; 0 if the usage exceeds the limit. */
struct quota_limits quota_left(const struct quota_limits *limits, const struct quota_amounts *used);
bool quota_has_limits(const struct quota_limits *limits);
bool quota_allows(const struct quota_limits *limits, const struct quota_amounts *amounts);
/* Whether some limit of `before` was raised or removed in `limits`, so that more may be allowed. */
bool quota_allows_more(const struct quota_limits *limits, const struct quota_limits *before);

void quota_add(struct quota_amounts *to, const struct quota_amounts *by);
void quota_subtract(struct quota_amounts *from, const struct quota_amounts *by);
