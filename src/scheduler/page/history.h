/*
 * Records how much of the cluster was assigned in the last ten minutes, for a page that has just been loaded. Has no records of
 * times at which the page had no reader (events.c). Not thread-safe.
 */
#pragma once

#include "base/clock.h"
#include "http/dashboard/json_text.h"
#include "scheduler/page/aggregate.h"

#define HISTORY_SAMPLES 120
#define HISTORY_INTERVAL_NS (5 * NSEC_PER_SEC)

/* A zeroed structure is empty. */
struct history {
	struct {
		uint64_t at_ns;
		float memory_pct, cores_pct; /* assigned, in percent of all cards */
		uint32_t waiting;
	} sample[HISTORY_SAMPLES];
	unsigned next;
};

/* Records `aggregate`, unless the last record is younger than HISTORY_INTERVAL_NS. */
void history_add(struct history *history, const struct aggregate *aggregate, uint64_t now_ns);
/* Writes "every_s", and lists with a value per record, oldest first: "ages_s", "memory_pct", "cores_pct", "pods_waiting". */
void history_write(const struct history *history, uint64_t now_ns, struct json_text *t);
