/*
 * Records the tenants' figures of the last ten minutes, for a page that was just loaded. A row is one tenant on one card; all
 * rows are sampled together, every HISTORY_EVERY_NS. Rows without samples in ten minutes are removed; beyond HISTORY_ROWS_MAX
 * no rows are added. No clock, no I/O; not thread safe.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "daemon/state/tenant.h"
#include "http/dashboard/json_text.h"

#define HISTORY_SAMPLES 120
#define HISTORY_EVERY_NS (5 * NSEC_PER_SEC)
#define HISTORY_ROWS_MAX 1024

struct history;

struct history_sample {
	float got_pct, limit_pct; /* GPU time charged in the last second; limit in force */
	float used_mib, quota_mib;
};

/* Returns NULL if out of memory. */
struct history *history_new(void);
/* NULL is allowed; returns NULL. */
struct history *history_free(struct history *history);

/* Begins a sampling, to which history_add() adds. `now_ns`: the time, by the same clock as in history_write(). */
void history_step(struct history *history, uint64_t now_ns);
/* Adds a sample. A second sample of a row in the same sampling replaces the first. */
void history_add(struct history *history, const char *id, unsigned card,
		 struct history_sample sample);

/* Writes the members of the JSON object of /api/history (docs/reference/protocol.md, "The page's state"), except "version". */
void history_write(const struct history *history, uint64_t now_ns, struct json_text *t);
