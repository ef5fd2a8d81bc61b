/*
 * What is held on a card that is in nobody's ledger: memory of processes of no tenant. It counts as taken
 * where memory is granted (admission.h). Main thread only.
 *
 * By NVML's list of processes, where that tells of each what it holds, and names the tenants' own; else by
 * the card's figure, less the ledgers and what drains.
 */
#ifndef ALLOT_DAEMON_GPU_WATCH_FOREIGN_H
#define ALLOT_DAEMON_GPU_WATCH_FOREIGN_H

struct node;
struct card;
struct census_card;

/* A census of the card: updates card->foreign_bytes, and node->foreign_known after the last card. */
void foreign_note_census(struct node *node, struct card *card, const struct census_card *seen);

#endif
