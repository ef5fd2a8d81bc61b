/* Shared by health.c and cordon.c. */
#pragma once

struct card;
struct node;

/* Reports a change to the subscribers. */
void health_tell(struct node *node, struct card *card);
/* Ends a reported fault by hand, and logs that. */
void health_cure_by_hand(struct card *card);
