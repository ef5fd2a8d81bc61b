/*
 * Serves Prometheus metrics over HTTP (setting metrics_listen): /metrics, which requires a token if metrics_token_file is set,
 * and /healthz and /readyz for supervisors. A page is made at most ten times a second. Main thread only.
 */
#pragma once

#include "base/error.h"

struct node;
struct config;
struct metrics;

/* Checks the settings metrics_*. -EACCES if other machines could read the metrics without a token; else -EINVAL. Pure. */
int metrics_check(const struct config *config, struct error *err);

/* Starts to listen. If metrics_listen is off, returns 0 and leaves *ret as it is. */
int metrics_start(struct node *node, struct metrics **ret, struct error *err);
/* Stops listening. NULL is allowed; returns NULL. */
struct metrics *metrics_stop(struct metrics *metrics);
