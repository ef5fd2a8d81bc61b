/*
 * Reads a node's figures for a page of metrics. Each lock of an arbitration is taken for a moment, once a
 * tenant and device; no file but /proc/self/statm and /proc/meminfo is read, the driver is asked nothing.
 * Main thread only.
 */
#pragma once

#include "daemon/export/metrics/figures.h"

struct node;

/* -ENOMEM. What is not the node's (started_ns, pages, pages_ns) is left at 0. */
int metrics_gather(struct node *node, struct metrics_figures *ret);
/* What it holds, not itself. */
void metrics_figures_free(struct metrics_figures *figures);

/* What containers there are, and the freezer (gather_containers.c). -ENOMEM. */
int metrics_gather_containers(struct node *node, uint64_t now_ns, struct metrics_figures *f);
/* Adds the labels "device" and "uuid" of a card. */
void metrics_label_card(char *labels, const struct card *card);
