/*
 * Measures what each card is used (card_use.h), and says when that is to be published (kube/own/uses.h): on a change that
 * counts, a twentieth of the window after the last time at the earliest, and each fifth of it anyhow, so that others see
 * that it is still measured. With the setting kube_use_window. Main thread only.
 */
#pragma once

#include "base/error.h"

struct node;
struct use_publisher;

/* `publish`: the text is another one. -errno. */
int use_publisher_start(struct node *node, void (*publish)(void *data), void *data,
			struct use_publisher **ret, struct error *err);
struct use_publisher *use_publisher_stop(struct use_publisher *p); /* NULL is fine; returns NULL */

/* The annotation, to be freed. NULL: there is nothing to publish yet, no publisher, or no memory. */
char *use_publisher_text(const struct use_publisher *p);
