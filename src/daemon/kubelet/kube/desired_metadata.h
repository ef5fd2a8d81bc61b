/*
 * The annotations and labels that this node's Node object (Kubernetes) must have, and a comparison that finds the missing
 * ones. Pure, but allocates; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kube/client/patch.h"
#include "kube/hami/cards.h"
#include "kube/hami/scores.h"

#define DESIRED_LABELS_MAX 16

struct desired_metadata {
	char *cards;      /* hami.io/node-nvidia-register; owned */
	char *scores;     /* hami.io/node-nvidia-score; owned; NULL if the links are unknown */
	char *uses;       /* allot.dev/node-use; owned; NULL if not published */
	char *label_text; /* owned; the labels point into it */
	struct patch_pair label[DESIRED_LABELS_MAX];
	size_t labels;
};

/*
 * Makes all members but `uses`. `labels` is like "gpu=on,team=a", or "none"; `scores` may be NULL. Returns -ENOMEM, or -EINVAL
 * if a label is wrong (`err` names it).
 */
int desired_metadata_make(const struct kube_cards *cards, const struct kube_scores *scores,
			  const char *labels, struct desired_metadata *ret, struct error *err);
void desired_metadata_free(struct desired_metadata *desired);
bool desired_metadata_equal(const struct desired_metadata *a, const struct desired_metadata *b);

/* Checks labels by Kubernetes' rules for names and values. */
int desired_metadata_check_labels(const char *labels, struct error *err);

/* The annotations and labels that the Node object lacks, or has with other values. */
struct metadata_diff {
	struct patch_pair annotation[3], label[DESIRED_LABELS_MAX]; /* point into `desired` */
	size_t annotations, labels;
};
struct metadata_diff desired_metadata_diff(const struct desired_metadata *desired,
					   const json_t *metadata);
