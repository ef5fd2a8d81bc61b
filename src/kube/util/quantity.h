/*
 * Amounts as Kubernetes writes them in limits and quotas (kubernetes.io, "Quantity"): 3, 2k, 8Gi, 1e3, 1500m. GPUs and
 * parts of them are whole. Pure; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

/* -EINVAL: it is no quantity; -EDOM: it is none that is whole; -ERANGE: it does not fit. err names the text. */
int quantity_parse(const char *text, int64_t *ret, struct error *err);

/* Of a value in JSON, where a quantity may stand as a number as well. */
int quantity_read_any(const json_t *value, int64_t *ret, struct error *err);

/* The same, 0 to `most`. -EINVAL with the value and what would be right. */
int quantity_read(const json_t *value, uint64_t most, uint64_t *ret, struct error *err);
