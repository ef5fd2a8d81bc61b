/*
 * How well the cards of a node are linked, pair by pair (annotation hami.io/node-nvidia-score):
 * [{"uuid":"GPU-a","score":{"GPU-b":50}}, ...], an entry for each card and in it each other one. Thread safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

struct kube_scores {
	size_t count;
	char (*id)[KUBE_ID_MAX]; /* of each card; owned */
	int *score;              /* of card i and card j: score[i * count + j]; owned */
};

/* `count` cards without names and with scores of 0. -ENOMEM. */
int scores_new(size_t count, struct kube_scores *ret);
/* A pair that is not told is 0. -EINVAL with what is wrong: a card that is named and has no entry, one that
 * has two, what is no number; -ENOMEM. To be freed by scores_free(). */
int scores_parse(const char *text, struct kube_scores *ret, struct error *err);
/* NULL: no memory; to be freed by free(). */
char *scores_format(const struct kube_scores *scores);
void scores_free(struct kube_scores *scores);
