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
 * (memory_waiters.h). After the last card, sets node->foreign_known. If NVML lists all tenants' processes and each listed
 * process's memory, sums the processes outside tenants. Otherwise subtracts ledgers and draining memory from the used memory.
 */
void census_count_foreign(struct node *node, struct card *card, const struct census_card *seen);
