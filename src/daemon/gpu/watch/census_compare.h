/*
 * Compares a census (a reading of NVML's figures) with what the tenants' libraries counted. Finds violations, the cost of a
 * context, memory that no call allocated, and memory of processes outside all tenants. Main thread only.
 */
#pragma once

struct card;
struct census_card;
struct node;

/* Compares NVML's figures for one card with its tenants' ledgers. */
void census_compare(struct node *node, unsigned card_index, const struct census_card *seen);

/*
 * Updates card->foreign_bytes: memory that no tenant's process has counted, which is not available to waiting tenants
 * (memory_waiters.h). After the last card, sets node->foreign_known. Sums NVML's list of processes if that has all tenants'
 * processes and gives each process's memory. Otherwise subtracts ledgers and draining memory from the card's used memory.
 */
void census_count_foreign(struct node *node, struct card *card, const struct census_card *seen);
