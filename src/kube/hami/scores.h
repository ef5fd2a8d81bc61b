/*
 * Scores of how well each pair of a node's GPUs is connected (annotation hami.io/node-nvidia-score); a higher score is a faster
 * link. The value is [{"uuid":"GPU-a","score":{"GPU-b":50}}, ...], with one entry per GPU that scores the other GPUs. Thread
 * safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

struct kube_scores {
	size_t count;
	char (*id)[KUBE_ID_MAX]; /* owned */
	int *score;              /* of GPUs i and j: score[i * count + j]; owned */
};

/* A table of zeros for `count` GPUs, whose ids are "" at first. Returns 0 or -ENOMEM. */
int scores_new(size_t count, struct kube_scores *ret);
/* A missing pair scores 0. -EINVAL, for example if a scored GPU has no entry; or -ENOMEM. Free with scores_free(). */
int scores_parse(const char *text, struct kube_scores *ret, struct error *err);
/* The caller frees the text; NULL if out of memory. */
char *scores_format(const struct kube_scores *scores);
void scores_free(struct kube_scores *scores);
