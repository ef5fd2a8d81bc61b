/*
 * Measures the use of each card (card_use.h), and decides when to publish it (kube/own/uses.h). A significant change is
 * published, but at most once in a twentieth of the window. Without such a change the use is published once in every fifth of the
 * window, which shows others that measuring goes on. Needs the setting kube_use_window. Main thread only.
 */
#pragma once

#include "base/error.h"

struct node;
struct use_publisher;

/* Starts measuring. `publish` is called whenever use_publisher_text() has changed. Returns 0 or -errno. */
int use_publisher_start(struct node *node, void (*publish)(void *data), void *data,
			struct use_publisher **ret, struct error *err);
struct use_publisher *use_publisher_stop(struct use_publisher *p); /* NULL is fine; returns NULL */

/*
 * Returns the text of the annotation allot.dev/node-use; the caller frees it. NULL if there is nothing to publish yet, if `p`
 * is NULL, or if out of memory.
 */
char *use_publisher_text(const struct use_publisher *p);
