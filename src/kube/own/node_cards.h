/*
 * Two of a node's annotations about its GPUs. Thread safe.
 *
 * allot.dev/node-use has the use of the GPUs, as allotd measures it, so that a scheduler can place pods by measured use. The
 * percentages do not count tenants that were placed by measured use. `t` is the time of the measurement by the node's clock;
 * while `t` changes, the node still measures.
 *
 *     {"t":1790000000,"cards":[{"id":"GPU-..","peak":41,"now":37,"held":80,"mem":12000}]}
 *
 * allot.dev/node-shut has the cooldowns. A cooldown is the time for which a GPU takes no opportunistic pods (pods that are
 * placed by measured use). The scheduler writes it after evicting opportunistic pods, for a scheduler that takes over.
 *
 *     {"cards":[{"id":"GPU-..","until":1790000600,"rounds":2}]}
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

#define COOLDOWN_ROUNDS_MAX 255

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

struct kube_cooldown {
	char id[KUBE_ID_MAX];
	/* in seconds since 1970 */
	int64_t until_s;
	/* number of cooldowns in a row, from 1; kept for a while after the cooldown, because it lengthens the next one */
	unsigned rounds;
};

struct kube_cooldowns {
	size_t count;
	struct kube_cooldown *card; /* owned */
};

/* Return -EINVAL (the error names the GPU and the field), or -ENOMEM. Free with uses_free() or cooldowns_free(). */
int uses_parse(const char *text, struct kube_uses *ret, struct error *err);
int cooldowns_parse(const char *text, struct kube_cooldowns *ret, struct error *err);
/* The caller frees the text; NULL if out of memory. */
char *uses_format(const struct kube_uses *uses);
char *cooldowns_format(const struct kube_cooldowns *cooldowns);
void uses_free(struct kube_uses *uses);
void cooldowns_free(struct kube_cooldowns *cooldowns);
