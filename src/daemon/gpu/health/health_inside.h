/* Shared by health.c and cordon.c. */
#pragma once

struct card;
struct node;

/* Tells the subscribers of a change. */
void health_tell(struct node *node, struct card *card);
/* Forgets a reported fault because a user asked for it, and logs that. */
void health_clear_fault_by_hand(struct card *card);
