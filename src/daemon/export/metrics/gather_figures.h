/*
 * Reads the figures (values of all metrics) of this node for a page of metrics. Locks each arbitration briefly, once per
 * tenant and device. Does not call the driver. Main thread only.
 */
#pragma once

#include "daemon/export/metrics/figures.h"

struct node;

/* Reads all figures except started_ns, pages and pages_ns, which stay 0. Returns 0 or -ENOMEM. */
int metrics_gather(struct node *node, struct metrics_figures *ret);
/* Frees the contents, not the struct itself. */
void metrics_figures_free(struct metrics_figures *figures);

/* Reads the figures of containers (gather_containers.c). Returns 0 or -ENOMEM. */
int metrics_gather_containers(struct node *node, uint64_t now_ns, struct metrics_figures *f);
/* Appends the labels "device" and "uuid" of a card. */
void metrics_label_card(char *labels, const struct card *card);
