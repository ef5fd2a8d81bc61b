/*
 * How much of the cluster was promised in the last ten minutes, so that a page that is loaded anew can show it. Pure; not thread
 * safe.
 */
#pragma once

#include "base/clock.h"
#include "http/dashboard/json_text.h"
#include "scheduler/page/aggregate.h"

#define PAST_MOMENTS 120
#define PAST_EVERY_NS (5 * NSEC_PER_SEC)

/* All zero: nothing. */
struct past {
	struct {
		uint64_t at_ns;
		float memory_pct, cores_pct; /* promised, of all cards */
		uint32_t waiting;            /* pods */
	} moment[PAST_MOMENTS];
	unsigned next;
};

/* Notes a moment, where the last one is PAST_EVERY_NS ago. */
void past_note(struct past *past, const struct aggregate *aggregate, uint64_t now_ns);
/* Members "every_s", and lists with a value a moment, oldest first: "ages_s", "memory_pct", "cores_pct", "pods_waiting". */
void past_write(const struct past *past, uint64_t now_ns, struct json_text *t);
