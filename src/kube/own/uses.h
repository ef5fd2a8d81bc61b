/*
 * The use of a node's GPUs (annotation allot.dev/node-use), as allotd measures it, so that a scheduler can place pods by
 * measured use.
 *
 *     {"t":1790000000,"cards":[{"id":"GPU-..","peak":41,"now":37,"held":80,"mem":12000}]}
 *
 * The percentages do not count tenants that were placed by measured use. `t` is the time of the measurement by the node's
 * clock; while `t` changes, the node still measures. Thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

struct kube_use {
	char id[KUBE_ID_MAX];
	unsigned peak_pct; /* 90th percentile of the GPU's busy time over the last minutes */
	unsigned now_pct;  /* average of the GPU's busy time over the last minute */
	/* sum of the guarantees of the tenants that were on the GPU for the whole time that peak_pct covers */
	unsigned held_pct;
	uint64_t memory_mib; /* memory that all tenants hold */
};

struct kube_uses {
	int64_t measured_s;
	size_t count;
	struct kube_use *card; /* owned */
};

/* -EINVAL (the error names the GPU and the field), or -ENOMEM. Free with uses_free(). */
int uses_parse(const char *text, struct kube_uses *ret, struct error *err);
/* The caller frees the text; NULL if out of memory. */
char *uses_format(const struct kube_uses *uses);
void uses_free(struct kube_uses *uses);
