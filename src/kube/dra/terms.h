/*
 * The opaque parameters that a DeviceClass or a ResourceClaim gives to the driver gpu.allot.dev: terms of a tenant beyond
 * its memory and cores, which are capacity.
 *
 *     apiVersion: gpu.allot.dev/v1
 *     kind: GpuTerms
 *     coresLimit: 60       # percent of each GPU; the least that may be said is the cores of the request
 *     priority: 10         # -100 to 100
 *     onFull: wait         # fail, wait or swap
 *     sharing: space       # time or space
 *     group: trainers      # with sharing: space
 *
 * Every field may be left out. Pure; thread safe.
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
	char on_full[8];            /* "": it does not say */
	char sharing[8];            /* the same */
	char group[PARSE_NAME_MAX]; /* the same */
};

/* Adds what the parameters say to *terms: they go before what is there. -EINVAL with the field and what would be right. */
int dra_terms_add(const json_t *parameters, struct dra_terms *terms, struct error *err);
