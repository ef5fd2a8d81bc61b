/* Internal to health.c (faults) and cordon.c (cards that take no new tenants by order). */
#pragma once

struct card;
struct node;

/* Calls the subscribers after a change. */
void health_notify(struct node *node, struct card *card);
/* Forgets a reported fault because a user asked for it, and logs that. */
void health_clear_fault_by_hand(struct card *card);
