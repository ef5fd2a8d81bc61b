/*
 * HAMi's scores of a node and of a card (its scheduler's documentation, "scheduling policy"): how full something is. Binpack
 * takes the highest, spread the lowest. Each score is ten times the sum of three shares: 0 if empty, 30 if full.
 */
#pragma once

#include "policy/placement/place_request.h"

/* Scores a node's cards as they are: cards in use of all cards, compute used of all compute, memory used of all memory. */
double place_cards_score(const struct place_card *card, unsigned count);

/* Scores the card as it would be with the request on it: slots, compute and memory, each by its weight. */
double place_card_score(const struct place_card *card, const struct place_request *request);
