#include "gpu_model_inside.h"

#define SLICE_NS (2090 * US)
#define SLICE_GAP_NS (310 * US)

static bool has_work(const struct gpu_model *m, int i)
{
	return i >= 0 && m->process[i] && m->process[i]->used && process_queued(m->process[i]);
}

/* The next context after the present one that has work; -1: none. */
static int next_context(const struct gpu_model *m)
{
	for (int k = 1; k <= m->processes; k++) {
		int i = (m->context + k) % m->processes;

		if (has_work(m, i))
			return i;
	}
	return -1;
}

/* Decides what the GPU does from now on. */
void card_schedule(struct gpu_model *m)
{
	int next;

	if (m->now < m->gap_until)
		return;
	next = next_context(m);
	if (next < 0)
		return;
	if (has_work(m, m->context)) {
		if (next == m->context)
			m->slice_ends = m->now + SLICE_NS;
		if (m->now < m->slice_ends)
			return;
		m->gap_until = m->now + SLICE_GAP_NS;
	} else {
		m->gap_until = m->now + (m->context < 0 ? 0 : m->config.switch_ns);
	}
	m->context = next;
	m->slice_ends = m->gap_until + SLICE_NS;
}

uint64_t card_event_at(const struct gpu_model *m)
{
	const struct model_process *p;
	uint64_t end;

	if (m->now < m->gap_until)
		return m->gap_until;
	if (!has_work(m, m->context))
		return NEVER;
	p = m->process[m->context];
	end = m->now + p->queue[p->head % QUEUE];
	return end < m->slice_ends || next_context(m) == m->context ? end : m->slice_ends;
}

void card_advance(struct gpu_model *m, uint64_t to)
{
	if (m->now >= m->gap_until && has_work(m, m->context)) {
		struct model_process *p = m->process[m->context];

		p->queue[p->head % QUEUE] -= to - m->now;
		p->tenant->work_ns += to - m->now;
		p->tenant->slot_work_ns[p->slot] += to - m->now;
	}
	m->now = to;
	if (m->now >= m->gap_until && has_work(m, m->context) &&
	    m->process[m->context]->queue[m->process[m->context]->head % QUEUE] == 0)
		process_end_kernel(m, m->process[m->context]);
}
