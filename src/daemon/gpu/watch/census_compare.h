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
 * (memory_waiters.h). After the last card, sets node->foreign_known. Uses NVML's list if that gives every process's memory and
 * has all tenants' processes; else the card's use minus ledgers and draining memory.
 */
void census_count_foreign(struct node *node, struct card *card, const struct census_card *seen);
