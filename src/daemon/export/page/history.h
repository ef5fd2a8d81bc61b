/*
 * What tenants had in the last ten minutes, so that a page that is loaded anew can show it: a sample each
 * HISTORY_EVERY_NS of each tenant on each card. Pure, but for memory; not thread safe.
 *
 * A row is forgotten when nothing of it is left in those ten minutes. Of more than HISTORY_ROWS_MAX the later
 * ones are not kept.
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
	float got_pct, limit_pct;  /* charged GPU time of the last second, and the limit in force */
	float used_mib, quota_mib; /* memory */
};

/* NULL: out of memory. */
struct history *history_new(void);
/* NULL is fine; returns NULL. */
struct history *history_free(struct history *history);

/* The next moment; samples that are added belong to it. `now_ns` is on the clock that is written. */
void history_step(struct history *history, uint64_t now_ns);
/* Of a tenant, by its id, on a card. What is added twice counts once. */
void history_add(struct history *history, const char *id, unsigned card,
		 struct history_sample sample);

/*
 * Members "every_s", "ages_s" (of each moment, oldest first, at now_ns) and "tenants": a list of {"id", "index",
 * "got_1s_pct", "memory_used_mib": a value a moment, null where there is none; "cores_limit_now_pct", "memory_quota_mib":
 * changes, as [moment, value]}.
 */
void history_write(const struct history *history, uint64_t now_ns, struct json_text *t);
