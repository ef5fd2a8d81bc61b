#include "daemon/gpu/nvml/census_policy.h"

#include <stdio.h>
#include <string.h>

#include "policy/safety/health_policy.h"

uint64_t census_every_ns(uint64_t asked_ns, uint64_t cost_ns)
{
	uint64_t least = cost_ns > CENSUS_EVERY_MOST_NS / CENSUS_COST_PART
				 ? CENSUS_EVERY_MOST_NS
				 : cost_ns * CENSUS_COST_PART;
	return least > asked_ns ? least : asked_ns;
}

void census_stability_note(struct census_stability *stability, uint64_t mark, uint64_t ledgers,
			   uint64_t now_ns)
{
	bool is_same = stability->same_count && mark == stability->mark &&
		       ledgers == stability->ledgers;
	*stability = (struct census_stability){ .mark = mark,
						.ledgers = ledgers,
						.since_ns = is_same ? stability->since_ns : now_ns,
						.last_ns = now_ns,
						.same_count = is_same ? stability->same_count + 1
								      : 1 };
}

bool census_is_stable(const struct census_stability *stability, uint64_t ledgers,
		      uint64_t interval_ns, uint64_t now_ns)
{
	return interval_ns >= HEALTH_POLL_NS && stability->same_count >= CENSUS_SAME_COUNT &&
	       stability->last_ns - stability->since_ns >= CENSUS_SAME_INTERVALS * interval_ns &&
	       ledgers == stability->ledgers && now_ns - stability->last_ns < CENSUS_PAUSE_MAX_NS;
}

bool census_is_over(uint64_t nvml_bytes, uint64_t most_bytes)
{
	uint64_t slack = most_bytes / CENSUS_SLACK_PART;
	if (slack < CENSUS_SLACK_BYTES)
		slack = CENSUS_SLACK_BYTES;
	return nvml_bytes > most_bytes && nvml_bytes - most_bytes > slack;
}

bool census_confirm(struct census_over *over, bool is_over, uint64_t now_ns, uint64_t least_ns)
{
	if (!is_over) {
		over->count = 0;
		return false;
	}
	if (over->count++ == 0)
		over->since_ns = now_ns;
	/* Require a least time too: several quick censuses may all fall into one short disturbance. */
	return over->count >= CENSUS_OVER_COUNT && now_ns - over->since_ns >= least_ns;
}

uint64_t census_confirmed_context(struct census_least *least, const char *tenant,
				  uint64_t nvml_bytes)
{
	bool is_second = *least->tenant && strcmp(least->tenant, tenant) != 0;
	uint64_t greater = nvml_bytes > least->bytes ? nvml_bytes : least->bytes;
	if (!*least->tenant || nvml_bytes < least->bytes) {
		snprintf(least->tenant, sizeof(least->tenant), "%s", tenant);
		least->bytes = nvml_bytes;
	}
	return is_second ? greater : UINT64_MAX;
}

uint64_t census_unnamed(uint64_t nvml_bytes, uint64_t ledger_most_bytes, uint64_t counted_bytes,
			uint64_t *beyond_before)
{
	uint64_t beyond = nvml_bytes > ledger_most_bytes ? nvml_bytes - ledger_most_bytes : 0;
	uint64_t expected = counted_bytes > *beyond_before ? counted_bytes : *beyond_before;
	*beyond_before = beyond;
	return beyond < expected ? beyond : expected;
}
