/*
 * How much of the cluster was assigned in the last ten minutes, so that a page that has just been loaded can show it. Pure;
 * not thread-safe.
 */
#pragma once

#include "base/clock.h"
#include "http/dashboard/json_text.h"
#include "scheduler/page/aggregate.h"

#define PAST_MOMENTS 120
#define PAST_EVERY_NS (5 * NSEC_PER_SEC)

/* A zeroed structure is empty. */
struct past {
	struct {
		uint64_t at_ns;
		float memory_pct, cores_pct; /* assigned, in percent of all cards */
		uint32_t waiting;            /* number of waiting pods */
	} moment[PAST_MOMENTS];
	unsigned next;
};

/* Records the values of `aggregate` as of now_ns, unless the last record is younger than PAST_EVERY_NS. */
void past_note(struct past *past, const struct aggregate *aggregate, uint64_t now_ns);
/*
 * Writes the member "every_s" and lists with one value per record, oldest first: "ages_s", "memory_pct", "cores_pct",
 * "pods_waiting".
 */
void past_write(const struct past *past, uint64_t now_ns, struct json_text *t);
