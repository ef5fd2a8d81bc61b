/*
 * HAMi's scores (its scheduler's documentation, "scheduling policy"): how full a node or GPU is. The policy binpack takes the
 * highest score, spread the lowest. A score is ten times the sum of three fractions: 0 is empty, 30 is full.
 */
#pragma once

#include "policy/placement/place_request.h"

/* A node's GPUs as they are: GPUs in use, compute used and memory used, each as a part of the whole. */
double place_cards_score(const struct place_card *card, unsigned count);

/* The GPU with the request on it: the used parts of slots, compute and memory, times the request's weights. */
double place_card_score(const struct place_card *card, const struct place_request *request);
