#include "sim/server/meter.h"

#include <string.h>

/* Makes `bucket` the newest, unless a newer one exists. Empties all buckets after the previous newest one. */
static void roll(struct meter *m, uint64_t bucket)
{
	if (bucket <= m->last)
		return;
	if (bucket - m->last >= METER_BUCKETS) {
		memset(m->busy_ns, 0, sizeof(m->busy_ns));
		m->last = bucket;
		return;
	}
	while (m->last < bucket)
		m->busy_ns[++m->last % METER_BUCKETS] = 0;
}

void meter_add(struct meter *m, uint64_t from_ns, uint64_t to_ns)
{
	while (from_ns < to_ns) {
		uint64_t bucket = from_ns / METER_BUCKET_NS;
		uint64_t end = (bucket + 1) * METER_BUCKET_NS;
		uint64_t until = to_ns < end ? to_ns : end;

		roll(m, bucket);
		if (bucket + METER_BUCKETS > m->last)
			m->busy_ns[bucket % METER_BUCKETS] += (uint32_t)(until - from_ns);
		from_ns = until;
	}
}

uint32_t meter_pct(const struct meter *m, uint64_t bucket)
{
	if (bucket > m->last || bucket + METER_BUCKETS <= m->last)
		return 0;
	/* Round up: NVML never reports 0 for a GPU that was busy at all. */
	return (uint32_t)((m->busy_ns[bucket % METER_BUCKETS] * 100ull + METER_BUCKET_NS - 1) /
			  METER_BUCKET_NS);
}
