/* Between health.c and cordon.c. */
#pragma once

struct card;
struct node;

/* Tells those that want to know. */
void health_tell(struct node *node, struct card *card);
/* A fault that was reported is over; says so. */
void health_cure_by_hand(struct card *card);
