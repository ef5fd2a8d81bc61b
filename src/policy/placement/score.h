/*
 * HAMi's scores (its scheduler's documentation, "scheduling policy"): how full a node or card is. Binpack takes the
 * highest, spread the lowest. Ten times the sum of three shares: 0 empty, 30 full.
 */
#pragma once

#include "policy/placement/place_request.h"

/* Scores a node's cards as they are: cards in use, compute used and memory used, each as a part of the whole. */
double place_cards_score(const struct place_card *card, unsigned count);

/* Scores the card with the request on it: slots, compute and memory, each by its weight. */
double place_card_score(const struct place_card *card, const struct place_request *request);
