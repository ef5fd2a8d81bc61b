/*
 * Measures the cards' use (card_use.h) for schedulers, and decides when to publish it (kube/own/node_cards.h). The window is the
 * setting kube_use_window. A change that card_use_must_publish() finds is published at most once in a twentieth of the window;
 * without such a change, the use is published once in a fifth of the window, to show that measuring goes on. Main thread only.
 */
#pragma once

#include "base/error.h"

struct node;
struct use_publisher;

/* Starts measuring. `publish` is called when use_publisher_text() has changed. Returns 0 or -errno. */
int use_publisher_start(struct node *node, void (*publish)(void *data), void *data,
			struct use_publisher **ret, struct error *err);
/* NULL is allowed; returns NULL */
struct use_publisher *use_publisher_stop(struct use_publisher *p);

/* Text of the annotation allot.dev/node-use; the caller frees it. NULL if there is none yet, `p` is NULL, or out of memory. */
char *use_publisher_text(const struct use_publisher *p);
