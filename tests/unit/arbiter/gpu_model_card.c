#include "gpu_model_inside.h"

#include <math.h>

#define SLICE_NS (2090 * US)
#define SLICE_GAP_NS (310 * US)

static bool has_work(const struct gpu_model *m, int i)
{
	return i >= 0 && m->process[i] && m->process[i]->used && process_queued(m->process[i]);
}

static uint32_t group_of(const struct gpu_model *m, int i)
{
	return m->process[i]->tenant->group;
}

/* Whether two processes run at the same time: a group's server is one context. */
static bool are_one(const struct gpu_model *m, int i, int k)
{
	if (i == k || i < 0 || k < 0)
		return i == k;
	return m->process[i]->used && group_of(m, i) && group_of(m, i) == group_of(m, k);
}

/* The next process after the present context that has work; -1: none. */
static int next_context(const struct gpu_model *m)
{
	int same = -1;

	for (int k = 1; k <= m->processes; k++) {
		int i = (m->context + k) % m->processes;

		if (!has_work(m, i))
			continue;
		if (!are_one(m, m->context, i))
			return i;
		if (same < 0)
			same = i;
	}
	return same;
}

/* Of the present context. */
static bool runs(const struct gpu_model *m, int i)
{
	return has_work(m, i) && are_one(m, m->context, i);
}

static bool context_has_work(const struct gpu_model *m)
{
	for (int i = 0; i < m->processes; i++)
		if (runs(m, i))
			return true;
	return false;
}

static void choose_context(struct gpu_model *m)
{
	int next;

	if (m->now < m->gap_until)
		return;
	next = next_context(m);
	if (next < 0)
		return;
	if (context_has_work(m)) {
		if (are_one(m, next, m->context))
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

static double pull_of(const struct model_process *p)
{
	return process_part(p) * (p->load.pull > 0 ? p->load.pull : 1);
}

/*
 * Shares the SMs out among the kernels that run: to each what it wants, where there is enough; else by pull,
 * to none more than it wants.
 */
static void set_speeds(struct gpu_model *m)
{
	double left = 1, pulls = 0, wanted = 0;
	int running = 0;
	bool again = true;

	for (int i = 0; i < m->processes; i++) {
		m->process[i]->speed = 0;
		if (!runs(m, i))
			continue;
		if (!group_of(m, i)) {
			m->process[i]->speed = 1;
			return;
		}
		running++;
		wanted += process_part(m->process[i]);
		pulls += pull_of(m->process[i]);
	}
	if (running > 1 && wanted > 1 && m->config.contended > 0)
		left = m->config.contended;
	while (again) {
		again = false;
		for (int i = 0; i < m->processes; i++) {
			struct model_process *p = m->process[i];

			if (!runs(m, i) || p->speed > 0 ||
			    process_part(p) * pulls > left * pull_of(p) * (1 + 1e-9))
				continue;
			p->speed = 1;
			left -= process_part(p);
			pulls -= pull_of(p);
			again = true;
		}
	}
	for (int i = 0; i < m->processes; i++)
		if (runs(m, i) && m->process[i]->speed <= 0)
			m->process[i]->speed = left * pull_of(m->process[i]) / pulls /
					       process_part(m->process[i]);
}

/* Decides what the GPU does from now on. */
void card_schedule(struct gpu_model *m)
{
	choose_context(m);
	set_speeds(m);
}

static uint64_t kernel_ends_at(const struct gpu_model *m, const struct model_process *p)
{
	double left = (double)p->queue[p->head % QUEUE] - p->rest;

	return m->now + (left > 0 ? (uint64_t)ceil(left / p->speed) : 0);
}

uint64_t card_event_at(const struct gpu_model *m)
{
	uint64_t at = NEVER;

	if (m->now < m->gap_until)
		return m->gap_until;
	for (int i = 0; i < m->processes; i++)
		if (runs(m, i) && kernel_ends_at(m, m->process[i]) < at)
			at = kernel_ends_at(m, m->process[i]);
	if (at == NEVER || are_one(m, next_context(m), m->context))
		return at;
	return at < m->slice_ends ? at : m->slice_ends;
}

/* So much of the first kernel of its queue is done. */
static void work_on(struct model_process *p, uint64_t dt_ns)
{
	uint64_t *left = &p->queue[p->head % QUEUE];
	double done = (double)dt_ns * p->speed + p->rest;
	uint64_t whole = (uint64_t)done < *left ? (uint64_t)done : *left;

	p->rest = done - (double)whole < 1 ? done - (double)whole : 0;
	/* Less than a nanosecond is left: what was asked for as its end. */
	if (*left - whole == 1 && p->rest > 1 - 1e-6) {
		whole++;
		p->rest = 0;
	}
	*left -= whole;
	p->tenant->work_ns += whole;
	p->tenant->slot_work_ns[p->slot] += whole;
	p->tenant->sm_ns += (double)whole * (p->tenant->group ? process_part(p) : 1);
}

void card_advance(struct gpu_model *m, uint64_t to)
{
	bool is_running = m->now >= m->gap_until;
	uint64_t dt_ns = to - m->now;

	for (int i = 0; i < m->processes && is_running; i++)
		if (runs(m, i))
			work_on(m->process[i], dt_ns);
	m->now = to;
	for (int i = 0; i < m->processes && m->now >= m->gap_until; i++)
		if (runs(m, i) && !m->process[i]->queue[m->process[i]->head % QUEUE]) {
			m->process[i]->rest = 0;
			process_end_kernel(m, m->process[i]);
		}
}
