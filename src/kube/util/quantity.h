/*
 * Kubernetes quantities in limits and quotas (kubernetes.io, "Quantity"): 3, 2k, 8Gi, 1e3, 1500m. Only whole amounts are
 * accepted, because GPUs and parts of them are whole. Pure; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

/* -EINVAL if the text is not a quantity, -EDOM if the amount is not whole, -ERANGE if it does not fit into 64 bits. */
int quantity_parse(const char *text, int64_t *ret, struct error *err);

/* Reads a quantity from JSON, where it may be a string or a number. */
int quantity_read_any(const json_t *value, int64_t *ret, struct error *err);

/* Like quantity_read_any(), but accepts only 0 to `most`. Returns 0 or -EINVAL. */
int quantity_read(const json_t *value, uint64_t most, uint64_t *ret, struct error *err);
