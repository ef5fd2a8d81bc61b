/*
 * Which of a node's cards are shut to pods that are placed by use (annotation allot.dev/node-shut), as allot-scheduler writes it
 * when it has sent some away (scheduler/opportunistic/opportunistic.h), so that its successor knows it:
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

#define SHUTS_ROUNDS_MAX 255

struct kube_shut {
	char id[KUBE_ID_MAX];
	int64_t until_s; /* since 1970; may be over: then the rounds still count for a while */
	unsigned rounds; /* how often in a row */
};

struct kube_shuts {
	size_t count;
	struct kube_shut *card; /* owned */
};

/* -EINVAL with card and field that are wrong; -ENOMEM. To be freed by shuts_free(). */
int shuts_parse(const char *text, struct kube_shuts *ret, struct error *err);
/* NULL: no memory; to be freed by free(). */
char *shuts_format(const struct kube_shuts *shuts);
void shuts_free(struct kube_shuts *shuts); /* leaves an empty list */
