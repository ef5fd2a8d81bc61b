/*
 * Compares a census with the tenants: violations, the cost of a context, memory that no call
 * allocated, and memory of processes outside all tenants. Main thread only.
 */
#pragma once

struct card;
struct census_card;
struct node;

/* Compares one card's reading with its tenants' ledgers. */
void census_compare(struct node *node, unsigned card_index, const struct census_card *seen);

/*
 * Updates card->foreign_bytes from a census: memory on the card that is in no ledger. Admission
 * counts it as taken (memory_waiters.h). Sets node->foreign_known after the last card. If NVML's
 * list gives every process's memory and contains all tenants' processes, sums the other processes
 * of the list. Otherwise takes the card's memory use minus the ledgers and draining memory.
 */
void census_count_foreign(struct node *node, struct card *card, const struct census_card *seen);
