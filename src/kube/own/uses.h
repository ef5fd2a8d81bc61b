/*
 * What a node's cards are used (annotation allot.dev/node-use), as allotd measures it, so that a scheduler may place by it:
 *
 *     {"t":1790000000,"cards":[{"id":"GPU-..","peak":41,"now":37,"held":80,"mem":12000}]}
 *
 * Only what tenants use counts that were not placed by use themselves. `t` is the node's own time, in seconds: all that it
 * says to others is that the node still measures. Thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

struct kube_use {
	char id[KUBE_ID_MAX];
	unsigned peak_pct; /* of the card's time: nine tenths of the last minutes were at or below it */
	unsigned now_pct;  /* on average of the last minute */
	unsigned held_pct; /* guarantees of those who have been there for as long as is measured */
	uint64_t memory_mib; /* that all tenants hold */
};

struct kube_uses {
	int64_t said_s;
	size_t count;
	struct kube_use *card; /* owned */
};

/* -EINVAL with card and field that are wrong; -ENOMEM. To be freed by uses_free(). */
int uses_parse(const char *text, struct kube_uses *ret, struct error *err);
/* NULL: no memory; to be freed by free(). */
char *uses_format(const struct kube_uses *uses);
void uses_free(struct kube_uses *uses); /* leaves an empty list */
