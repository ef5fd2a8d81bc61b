/*
 * Whole numbers as Kubernetes writes them, which for 2000 is "2k" (kubernetes.io, "Quantity"): extended resources are whole.
 * Pure; thread safe.
 */
#ifndef ALLOT_KUBE_QUANTITY_H
#define ALLOT_KUBE_QUANTITY_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

/* A text or a number, 0 to `most`. -EINVAL with the value and what would be right. */
int quantity_read(const json_t *value, uint64_t most, uint64_t *ret, struct error *err);

#endif
