/*
 * What a census means for each tenant: violations, what a context costs, memory that no call named; and how much
 * of a card others hold. Main thread only.
 */
#pragma once

struct card;
struct census_card;
struct node;

/* Compares one card's reading with its tenants' ledgers. */
void census_compare(struct node *node, unsigned card_index, const struct census_card *seen);

/*
 * A census of the card: updates card->foreign_bytes, what is held on it that is in nobody's ledger and so counts as taken where
 * memory is granted (admission.h), and node->foreign_known after the last card. By NVML's list of processes, where that tells
 * of each what it holds and names the tenants' own; else by the card's figure, less the ledgers and what drains.
 */
void census_count_foreign(struct node *node, struct card *card, const struct census_card *seen);
