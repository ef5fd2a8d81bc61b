#include "gpu_model_inside.h"

#include <math.h>
#include <stdlib.h>

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

/* True if both processes run at the same time: the processes of a space group share one context, that of its MPS server. */
static bool are_one(const struct gpu_model *m, int i, int k)
{
	if (i == k || i < 0 || k < 0)
		return i == k;
	return m->process[i]->used && group_of(m, i) && group_of(m, i) == group_of(m, k);
}

/* Returns the next process with work, round robin: of another context, or of the present one if no other has work. -1: none. */
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

/* True if kernels of the process run: its context is on the GPU, and it has work. */
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

static void begin_kernels(struct model_process *p)
{
	unsigned streams = p->load.streams ? p->load.streams : 1;

	if (streams > STREAMS_MAX)
		abort();
	for (; p->run_count < streams && p->run_count < process_queued(p); p->run_count++)
		p->left_ns[p->run_count] = (double)p->queue[(p->head + p->run_count) % QUEUE];
}

/* The SMs that its kernels use together if no other process contends. */
static double want_of(const struct model_process *p)
{
	double want = p->run_count * process_part(p), most = p->tenant->percentage / 100;

	return want < most ? want : most;
}

static double pull_of(const struct model_process *p)
{
	return want_of(p) * (p->load.pull > 0 ? p->load.pull : 1);
}

/* Speed of each kernel, as a part of its speed alone, if its process has this part of the SMs that it wants. */
static double kernel_speed(const struct model_process *p, double of_want)
{
	return of_want * want_of(p) / (p->run_count * process_part(p));
}

/*
 * Shares the SMs out among the running kernels. Each gets as many as it wants, if there are enough. Otherwise each gets a share
 * by pull, but no more than it wants.
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
		begin_kernels(m->process[i]);
		if (!group_of(m, i)) {
			m->process[i]->speed = 1;
			return;
		}
		running++;
		wanted += want_of(m->process[i]);
		pulls += pull_of(m->process[i]);
	}
	if (running > 1 && wanted > 1 && m->config.contended > 0)
		left = m->config.contended;
	while (again) {
		again = false;
		for (int i = 0; i < m->processes; i++) {
			struct model_process *p = m->process[i];

			if (!runs(m, i) || p->speed > 0 ||
			    want_of(p) * pulls > left * pull_of(p) * (1 + 1e-9))
				continue;
			p->speed = kernel_speed(p, 1);
			left -= want_of(p);
			pulls -= pull_of(p);
			again = true;
		}
	}
	for (int i = 0; i < m->processes; i++) {
		struct model_process *p = m->process[i];

		if (runs(m, i) && p->speed <= 0)
			p->speed = kernel_speed(p, left * pull_of(p) / pulls / want_of(p));
	}
}

/* Decides which kernels the GPU runs from now on. */
void card_schedule(struct gpu_model *m)
{
	choose_context(m);
	set_speeds(m);
}

static uint64_t kernel_ends_at(const struct gpu_model *m, const struct model_process *p)
{
	double left = p->left_ns[0];

	for (unsigned i = 1; i < p->run_count; i++)
		left = fmin(left, p->left_ns[i]);
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

/* Runs the process's kernels for dt_ns at their speed. */
static void work_on(struct model_process *p, uint64_t dt_ns)
{
	double sms = p->tenant->group ? process_part(p) : 1;

	for (unsigned i = 0; i < p->run_count; i++) {
		double done = fmin((double)dt_ns * p->speed, p->left_ns[i]);

		p->left_ns[i] -= done;
		if (p->left_ns[i] < 1e-3)
			p->left_ns[i] = 0;
		p->tenant->work_ns += done;
		p->tenant->slot_work_ns[p->slot] += done;
		p->tenant->sm_ns += done * sms;
	}
}

void card_advance(struct gpu_model *m, uint64_t to)
{
	bool is_running = m->now >= m->gap_until;
	uint64_t dt_ns = to - m->now;

	for (int i = 0; i < m->processes && is_running; i++)
		if (runs(m, i))
			work_on(m->process[i], dt_ns);
	m->now = to;
	for (int i = 0; i < m->processes && m->now >= m->gap_until; i++) {
		struct model_process *p = m->process[i];

		for (unsigned k = p->run_count; k-- > 0 && runs(m, i);)
			if (p->left_ns[k] <= 0)
				process_end_kernel(m, p, k);
	}
}
