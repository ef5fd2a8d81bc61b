/*
 * The opaque parameters that a DeviceClass or a ResourceClaim gives to the DRA driver gpu.allot.dev: a tenant's terms other
 * than memory and cores, which are capacities.
 *
 *     apiVersion: gpu.allot.dev/v1
 *     kind: GpuTerms
 *     coresLimit: 60       # percent of each GPU; at least the cores of the request
 *     priority: 10         # -100 to 100
 *     onFull: wait         # fail, wait or swap
 *     sharing: space       # time or space
 *     group: trainers      # with sharing: space
 *
 * Every field is optional. No I/O; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/parse.h"

#define DRA_TERMS_VERSION "gpu.allot.dev/v1"
#define DRA_TERMS_KIND "GpuTerms"

struct dra_terms {
	bool has_cores_limit;
	double cores_limit_pct;
	bool has_priority;
	int priority;
	char on_full[8];            /* "" if not given */
	char sharing[8];            /* "" if not given */
	char group[PARSE_NAME_MAX]; /* "" if not given */
};

/* Sets the fields of *terms that the parameters have. On -EINVAL, the error names the field and its valid values. */
int dra_terms_add(const json_t *parameters, struct dra_terms *terms, struct error *err);
