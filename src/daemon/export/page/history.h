/*
 * The tenants' figures of the last ten minutes, so that a freshly loaded page can show them. All tenants are sampled at the same
 * time, once per HISTORY_EVERY_NS. There is one row for each tenant on each card. Pure but for memory; not thread safe.
 *
 * A row without samples in the last ten minutes is removed. Samples that need a new row are dropped while there are
 * HISTORY_ROWS_MAX rows.
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
	float got_pct, limit_pct;  /* GPU time charged in the last second, and the limit in force */
	float used_mib, quota_mib; /* memory */
};

/* Returns NULL if out of memory. */
struct history *history_new(void);
/* NULL is allowed; returns NULL. */
struct history *history_free(struct history *history);

/* Begins the next sampling: history_add() then adds to it. `now_ns` is on the clock of history_write(). */
void history_step(struct history *history, uint64_t now_ns);
/* Adds a sample of the tenant with this id on a card. A second sample in the same sampling replaces the first. */
void history_add(struct history *history, const char *id, unsigned card,
		 struct history_sample sample);

/*
 * Writes the members "every_s", "ages_s" (the age of each sampling at now_ns, oldest first) and "tenants". "tenants" is a list of
 * {"id", "index", "got_1s_pct", "memory_used_mib": one value per sampling, or null; "cores_limit_now_pct", "memory_quota_mib":
 * changes, as [index of the sampling in "ages_s", value]}.
 */
void history_write(const struct history *history, uint64_t now_ns, struct json_text *t);
