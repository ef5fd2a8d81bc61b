/*
 * Cooldowns of a node's cards: until when each takes no opportunistic pods, that is pods which are placed by use. The scheduler
 * writes them to the node (annotation allot.dev/node-shut) after it evicted such pods (scheduler/opportunistic/opportunistic.h),
 * so that a scheduler that takes over knows them:
 *
 *     {"cards":[{"id":"GPU-..","until":1790000600,"rounds":2}]}
 *
 * Thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

#define COOLDOWN_ROUNDS_MAX 255

struct kube_cooldown {
	char id[KUBE_ID_MAX];
	int64_t until_s; /* since 1970; in the past the rounds still count for a while */
	unsigned rounds; /* of evictions in a row */
};

struct kube_cooldowns {
	size_t count;
	struct kube_cooldown *card; /* owned */
};

/* -EINVAL names the card and the field that are wrong; -ENOMEM. Free it with cooldowns_free(). */
int cooldowns_parse(const char *text, struct kube_cooldowns *ret, struct error *err);
/* NULL: out of memory. Free it with free(). */
char *cooldowns_format(const struct kube_cooldowns *cooldowns);
void cooldowns_free(struct kube_cooldowns *cooldowns); /* leaves an empty list */
