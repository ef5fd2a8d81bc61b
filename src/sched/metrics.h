/* What is counted of requests, and the page that tells it, as Prometheus reads it. Main thread only. */
#ifndef ALLOT_SCHED_METRICS_H
#define ALLOT_SCHED_METRICS_H

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

struct scheduler;

/* To be freed. NULL: no memory. */
char *metrics_page(const struct scheduler *scheduler);

#endif
