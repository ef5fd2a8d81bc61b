/* Latencies of periodic work, and their percentiles. */
#pragma once

#include <stdint.h>

/* 54 minutes of work each 50 ms; what comes later is left out. */
#define LATENCY_MAX 65536

struct latency {
	unsigned count;
	uint64_t ns[LATENCY_MAX];
};

void latency_add(struct latency *l, uint64_t ns);

/* The smallest value that at least `pct` percent do not exceed; 0 where there is
 * none. Sorts what is there. */
uint64_t latency_percentile(struct latency *l, double pct);
