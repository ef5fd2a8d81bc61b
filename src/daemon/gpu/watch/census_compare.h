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
 * Updates card->foreign_bytes, the memory in no ledger, which counts as taken for waiting tenants (memory_waiters.h), and after the last
 * card sets node->foreign_known. Uses NVML's list if that gives every process's memory and has all tenants' processes; else
 * the card's use minus ledgers and draining memory.
 */
void census_count_foreign(struct node *node, struct card *card, const struct census_card *seen);
