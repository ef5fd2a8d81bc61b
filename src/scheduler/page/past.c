#include "scheduler/page/past.h"

static float part_pct(uint64_t part, uint64_t all)
{
	return all ? (float)(100.0 * (double)part / (double)all) : 0;
}

void past_note(struct past *p, const struct aggregate *aggregate, uint64_t now_ns)
{
	unsigned last = (p->next + PAST_MOMENTS - 1) % PAST_MOMENTS;
	if (p->moment[last].at_ns && now_ns - p->moment[last].at_ns < PAST_EVERY_NS)
		return;
	const struct aggregate_sum *s = &aggregate->sum;
	p->moment[p->next].at_ns = now_ns;
	p->moment[p->next].memory_pct = part_pct(s->promised_bytes, s->memory_bytes);
	p->moment[p->next].cores_pct = part_pct(s->promised_mpct, s->cores_mpct);
	p->moment[p->next].waiting = (uint32_t)aggregate->waiting;
	p->next = (p->next + 1) % PAST_MOMENTS;
}

enum field { AGE, MEMORY, CORES, WAITING };

static void write_field(const struct past *p, enum field field, const char *name, uint64_t now_ns,
			struct json_text *t)
{
	json_text_open(t, name, '[');
	for (unsigned i = 0; i < PAST_MOMENTS; i++) {
		unsigned at = (p->next + i) % PAST_MOMENTS;
		uint64_t at_ns = p->moment[at].at_ns;
		if (!at_ns || now_ns - at_ns > PAST_MOMENTS * PAST_EVERY_NS)
			continue;
		switch (field) {
		case AGE:
			json_text_real(t, NULL, (double)(now_ns - at_ns) / (double)NSEC_PER_SEC);
			break;
		case MEMORY: json_text_real(t, NULL, (double)p->moment[at].memory_pct); break;
		case CORES: json_text_real(t, NULL, (double)p->moment[at].cores_pct); break;
		case WAITING: json_text_whole(t, NULL, p->moment[at].waiting); break;
		}
	}
	json_text_close(t, ']');
}

void past_write(const struct past *p, uint64_t now_ns, struct json_text *t)
{
	json_text_real(t, "every_s", (double)PAST_EVERY_NS / (double)NSEC_PER_SEC);
	write_field(p, AGE, "ages_s", now_ns, t);
	write_field(p, MEMORY, "memory_pct", now_ns, t);
	write_field(p, CORES, "cores_pct", now_ns, t);
	write_field(p, WAITING, "pods_waiting", now_ns, t);
}
