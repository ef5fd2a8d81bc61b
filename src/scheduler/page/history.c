#include "scheduler/page/history.h"

static float part_pct(uint64_t part, uint64_t all)
{
	return all ? (float)(100.0 * (double)part / (double)all) : 0;
}

void history_add(struct history *p, const struct aggregate *aggregate, uint64_t now_ns)
{
	unsigned last = (p->next + HISTORY_SAMPLES - 1) % HISTORY_SAMPLES;
	if (p->sample[last].at_ns && now_ns - p->sample[last].at_ns < HISTORY_INTERVAL_NS)
		return;
	const struct aggregate_sum *s = &aggregate->sum;
	p->sample[p->next].at_ns = now_ns;
	p->sample[p->next].memory_pct = part_pct(s->promised_bytes, s->memory_bytes);
	p->sample[p->next].cores_pct = part_pct(s->promised_mpct, s->cores_mpct);
	p->sample[p->next].waiting = (uint32_t)aggregate->waiting;
	p->next = (p->next + 1) % HISTORY_SAMPLES;
}

enum field { AGE, MEMORY, CORES, WAITING };

static void write_field(const struct history *p, enum field field, const char *name,
			uint64_t now_ns, struct json_text *t)
{
	json_text_open(t, name, '[');
	for (unsigned i = 0; i < HISTORY_SAMPLES; i++) {
		unsigned at = (p->next + i) % HISTORY_SAMPLES;
		uint64_t at_ns = p->sample[at].at_ns;
		if (!at_ns || now_ns - at_ns > HISTORY_SAMPLES * HISTORY_INTERVAL_NS)
			continue;
		switch (field) {
		case AGE:
			json_text_real(t, NULL, (double)(now_ns - at_ns) / (double)NSEC_PER_SEC);
			break;
		case MEMORY: json_text_real(t, NULL, (double)p->sample[at].memory_pct); break;
		case CORES: json_text_real(t, NULL, (double)p->sample[at].cores_pct); break;
		case WAITING: json_text_whole(t, NULL, p->sample[at].waiting); break;
		}
	}
	json_text_close(t, ']');
}

void history_write(const struct history *p, uint64_t now_ns, struct json_text *t)
{
	json_text_real(t, "every_s", (double)HISTORY_INTERVAL_NS / (double)NSEC_PER_SEC);
	write_field(p, AGE, "ages_s", now_ns, t);
	write_field(p, MEMORY, "memory_pct", now_ns, t);
	write_field(p, CORES, "cores_pct", now_ns, t);
	write_field(p, WAITING, "pods_waiting", now_ns, t);
}
