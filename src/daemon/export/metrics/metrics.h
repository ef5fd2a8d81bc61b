/*
 * Metrics for Prometheus by HTTP (setting metrics_listen): /metrics, and /healthz and /readyz for whoever
 * looks after the daemon. With metrics_token_file /metrics is for those who name the token. A page is made
 * at most ten times a second, whoever asks how often. Main thread only.
 */
#pragma once

#include "base/error.h"

struct node;
struct config;
struct metrics;

/*
 * What the settings together must not be: -EACCES when metrics could be read from other machines by
 * everyone, -EINVAL. Pure.
 */
int metrics_check(const struct config *config, struct error *err);

/* Listens. *ret is NULL where metrics_listen is off. */
int metrics_start(struct node *node, struct metrics **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct metrics *metrics_stop(struct metrics *metrics);
