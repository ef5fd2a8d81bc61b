/*
 * Reads a ResourceClaim (resource.k8s.io/v1) that the scheduler has allocated: the devices of this driver, each with its share
 * and terms. Thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/dra/dra_terms.h"

/* One allocated device for one request of the claim. The strings belong to the claim's object. */
struct dra_result {
	const char *request; /* "gpu", or "gpu/small" if the claim lists alternatives */
	const char *pool, *device;
	bool is_whole; /* consumedCapacity has no memory, so the claim has the whole device */
	uint64_t memory_bytes;
	double cores_pct; /* 0 means no guarantee */
	struct dra_terms terms;
};

struct dra_claim {
	const char *uid;
	size_t count;              /* 0 if no device of this driver is allocated */
	struct dra_result *result; /* owned */
	json_t *object;            /* owned */
};

/* Takes a reference to `object`. Returns -EINVAL if the claim is invalid (the error says how), or -ENOMEM. */
int dra_claim_read(json_t *object, struct dra_claim *ret, struct error *err);
void dra_claim_free(struct dra_claim *claim);
