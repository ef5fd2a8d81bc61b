/* What is counted of requests, and the page that tells it, as Prometheus reads it. Main thread only. */
#pragma once

#include <stdint.h>

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metrics_verb {
	VERB_WEBHOOK,
	VERB_FILTER,
	VERB_PRIORITIZE,
	VERB_PREEMPT,
	VERB_BIND,
	VERB_COUNT
};

struct metrics {
	struct metrics_figures {
		uint64_t good, refused, failed; /* answers */
		uint64_t spent_ns;              /* on this thread's clock */
	} verb[VERB_COUNT];
	uint64_t denied, changed; /* pods, by the webhook */
};

struct cluster;
struct config;
struct sched_audit;

/* To be freed. NULL: no memory. `audit`: NULL without an audit log; `cluster`: NULL without kube_api. */
char *metrics_page(const struct metrics *metrics, const struct config *config,
		   const struct sched_audit *audit, struct cluster *cluster);
