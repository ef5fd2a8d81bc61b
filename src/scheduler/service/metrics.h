/* Counts requests, and makes the page of metrics in Prometheus' text format. Main thread only. */
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
		/* numbers of answers: with a status below 400, of 400 to 499, of 500 or more */
		uint64_t good, refused, failed;
		uint64_t spent_ns; /* time that the main thread spent on these requests */
	} verb[VERB_COUNT];
	/* numbers of pods that the webhook denied, and that it admitted with changes */
	uint64_t denied, changed;
};

struct cluster;
struct config;
struct sched_audit;

/* The caller frees the page; NULL if memory runs out. `audit` is NULL without an audit log, `cluster` if kube_api is off. */
char *metrics_page(const struct metrics *metrics, const struct config *config,
		   const struct sched_audit *audit, struct cluster *cluster);
