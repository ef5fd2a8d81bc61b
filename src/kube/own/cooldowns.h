/*
 * A cooldown is the time for which a GPU takes no opportunistic pods (pods that are placed by measured use). After evicting
 * opportunistic pods, the scheduler writes the GPU's cooldown to the node (annotation allot.dev/node-shut), so that a scheduler
 * that takes over knows the cooldown.
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
	/* in seconds since 1970 */
	int64_t until_s;
	/* number of cooldowns in a row, from 1; kept for a while after the cooldown, because it lengthens the next one */
	unsigned rounds;
};

struct kube_cooldowns {
	size_t count;
	struct kube_cooldown *card; /* owned */
};

/* -EINVAL (the error names the GPU and the field), or -ENOMEM. Free with cooldowns_free(). */
int cooldowns_parse(const char *text, struct kube_cooldowns *ret, struct error *err);
/* The caller frees the text; NULL if out of memory. */
char *cooldowns_format(const struct kube_cooldowns *cooldowns);
void cooldowns_free(struct kube_cooldowns *cooldowns);
