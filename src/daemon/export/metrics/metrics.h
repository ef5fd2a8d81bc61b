/*
 * Metrics for Prometheus over HTTP (setting metrics_listen): /metrics, and /healthz and /readyz for supervisors. With
 * metrics_token_file, /metrics requires the token. A page is made at most ten times a second, however many requests come. Main
 * thread only.
 */
#pragma once

#include "base/error.h"

struct node;
struct config;
struct metrics;

/*
 * Checks that the settings metrics_* fit each other. Returns 0, -EACCES if everyone on other machines could read the metrics, or
 * -EINVAL. Pure.
 */
int metrics_check(const struct config *config, struct error *err);

/* Starts to listen. Sets *ret to NULL if metrics_listen is off. */
int metrics_start(struct node *node, struct metrics **ret, struct error *err);
/* Stops listening. NULL is allowed; returns NULL. */
struct metrics *metrics_stop(struct metrics *metrics);
