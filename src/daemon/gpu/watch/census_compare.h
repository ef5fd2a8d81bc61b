/*
 * What a census means for each tenant: violations, what a context costs, memory that no call named. Main thread only.
 */
#ifndef ALLOT_DAEMON_GPU_WATCH_CENSUS_COMPARE_H
#define ALLOT_DAEMON_GPU_WATCH_CENSUS_COMPARE_H

struct census_card;
struct node;

/* Compares one card's reading with its tenants' ledgers. */
void census_compare(struct node *node, unsigned card_index, const struct census_card *seen);

#endif
