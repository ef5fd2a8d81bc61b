/*
 * HAMi's scores of a node and of a card (its scheduler's documentation, "scheduling policy"): how full
 * something is, so that binpack takes the highest and spread the lowest. Each is a sum of three
 * shares, times ten: 0 for what is empty, 30 for what is full.
 */
#pragma once

#include "policy/placement/request.h"

/* A node's cards as they are: cards in use of all, compute of all compute, memory of all memory. */
double place_cards_score(const struct place_card *card, unsigned count);

/* The card as it would be with the request on it: slots, compute, memory, each by its weight. */
double place_card_score(const struct place_card *card, const struct place_request *request);
