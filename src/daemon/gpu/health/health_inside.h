/* Shared by health.c and cordon.c. */
#pragma once

struct card;
struct node;

/* Tells the subscribers that the card's health or cordon has changed. */
void health_tell(struct node *node, struct card *card);
/*
 * Declares the card healthy because a user asked for it: forgets a reported fault, and logs that.
 */
void health_cure_by_hand(struct card *card);
