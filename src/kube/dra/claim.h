/*
 * A ResourceClaim (resource.k8s.io/v1) as the scheduler has allocated it: which devices of this driver, how much of each,
 * and on which terms. Pure but for memory; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/dra/terms.h"

/* What the claim has of one device, for one of its requests. Texts are the object's. */
struct dra_result {
	const char *request; /* "gpu", or "gpu/small" of a request with alternatives */
	const char *pool, *device;
	bool is_whole; /* the scheduler gave the whole device: it counts no shares */
	uint64_t memory_bytes;
	double cores_pct; /* 0: no guarantee */
	struct dra_terms terms;
};

struct dra_claim {
	const char *uid;
	size_t count;              /* 0: nothing of this driver is allocated */
	struct dra_result *result; /* owned */
	json_t *object;            /* owned */
};

/* A reference to `object` is taken. -EINVAL: with what is wrong with it, of capacity or parameters; -ENOMEM. */
int dra_claim_read(json_t *object, struct dra_claim *ret, struct error *err);
/* Leaves it empty. */
void dra_claim_free(struct dra_claim *claim);
