/*
 * What is to stand on this node's Node object, and what of it does not. Pure but for memory; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kube/client/patch.h"
#include "kube/hami/cards.h"
#include "kube/hami/scores.h"

#define WANTED_LABELS_MAX 16

struct wanted {
	char *cards;      /* hami.io/node-nvidia-register; owned */
	char *scores;     /* hami.io/node-nvidia-score; NULL: the links are not known; owned */
	char *uses;       /* allot.dev/node-use; NULL: it is not published; owned */
	char *label_text; /* what the labels point into; owned */
	struct patch_pair label[WANTED_LABELS_MAX];
	size_t labels;
};

/* `labels`: "gpu=on,team=a", or "none". `scores` may be NULL. -EINVAL with the label that is wrong, -ENOMEM. */
int wanted_make(const struct kube_cards *cards, const struct kube_scores *scores,
		const char *labels, struct wanted *ret, struct error *err);
void wanted_free(struct wanted *wanted);
bool wanted_equal(const struct wanted *a, const struct wanted *b);

/* By Kubernetes' rules of names and values. */
int wanted_check_labels(const char *labels, struct error *err);

/* What a patch has to set so that the Node object's metadata say what is wanted. */
struct wanting {
	struct patch_pair annotation[3], label[WANTED_LABELS_MAX]; /* of `wanted` */
	size_t annotations, labels;
};
struct wanting wanted_compare(const struct wanted *wanted, const json_t *metadata);
