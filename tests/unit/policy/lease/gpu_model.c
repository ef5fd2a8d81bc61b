#include "gpu_model_inside.h"

#include <stdlib.h>

uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high)
{
	return high <= low ? low : low + random_next(state) % (high - low + 1);
}

struct gpu_model_config gpu_model_default_config(void)
{
	struct gpu_model_config config = {
		.arbiter = arbiter_default_config(),
		.seed = 1,
		.switch_ns = 150 * US,
		.poll_jitter_ns = 60 * US,
		.has_turns = true,
		.rings = true,
	};

	config.arbiter.switch_ns = config.switch_ns;
	return config;
}

static void *must(void *pointer)
{
	if (!pointer)
		abort();
	return pointer;
}

struct gpu_model *gpu_model_new(const struct gpu_model_config *config)
{
	struct gpu_model *m = must(calloc(1, sizeof(*m)));

	m->config = *config;
	m->arbiter = must(arbiter_new(&config->arbiter));
	m->random = config->seed;
	m->now = BEGIN_NS;
	m->poll_at = m->now;
	m->context = -1;
	return m;
}

struct gpu_model *gpu_model_free(struct gpu_model *m)
{
	if (!m)
		return NULL;
	for (int i = 0; i < m->tenants; i++)
		free(m->tenant[i]);
	for (int k = 0; k < m->processes; k++)
		free(m->process[k]);
	arbiter_free(m->arbiter);
	free(m);
	return NULL;
}

/* Tenants. */

int gpu_model_add(struct gpu_model *m, struct arbiter_share share, const struct gpu_model_load *load)
{
	int index = arbiter_add(m->arbiter, m->now, share);
	struct model_tenant *t;

	if (index < 0)
		abort();
	t = m->tenant[index];
	if (!t)
		t = m->tenant[index] = must(malloc(sizeof(*t)));
	*t = (struct model_tenant){ .used = true, .index = index, .share = share };
	if (index >= m->tenants)
		m->tenants = index + 1;
	gpu_model_add_process(m, index, load);
	return index;
}

void gpu_model_add_process(struct gpu_model *m, int tenant, const struct gpu_model_load *load)
{
	struct model_process *p;
	int place = 0;

	while (place < m->processes && m->process[place]->used)
		place++;
	if (place == PROCESSES_MAX)
		abort();
	if (place == m->processes)
		m->process[m->processes++] = must(malloc(sizeof(*p)));
	p = m->process[place];
	*p = (struct model_process){ .used = true, .tenant = m->tenant[tenant], .load = *load };
	p->member = p->tenant->members++;
	p->slot = p->tenant->slots++;
	if (p->slot == MEMBERS_MAX)
		abort();
	p->tenant->member[p->member] = (struct turns_process){ .slot = p->slot };
	p->flag_falls_at = p->report_idle_at = NEVER;
	process_begin_load(m, p);
}

static struct model_process *find_process(struct gpu_model *m, const struct model_tenant *t,
					  unsigned member)
{
	for (int k = 0; k < m->processes; k++) {
		struct model_process *p = m->process[k];

		if (p->used && p->tenant == t && p->member == member)
			return p;
	}
	abort();
}

void gpu_model_kill_process(struct gpu_model *m, int tenant)
{
	struct model_tenant *t = m->tenant[tenant];
	unsigned member = 0, last = t->members - 1;

	for (unsigned i = 0; i < t->members; i++)
		if (t->turns.turn == t->member[i].slot + 1)
			member = i;
	find_process(m, t, member)->used = false;
	t->members--;
	if (member == last)
		return;
	/* As in the daemon (src/daemon/arbitrate/observe.c): the last process moves to the free place. */
	t->member[member] = t->member[last];
	find_process(m, t, last)->member = member;
}

void gpu_model_remove(struct gpu_model *m, int tenant)
{
	arbiter_remove(m->arbiter, tenant);
	m->tenant[tenant]->used = false;
	for (int k = 0; k < m->processes; k++)
		if (m->process[k]->tenant == m->tenant[tenant])
			m->process[k]->used = false;
}

void gpu_model_set_load(struct gpu_model *m, int tenant, const struct gpu_model_load *load)
{
	for (int k = 0; k < m->processes; k++) {
		struct model_process *p = m->process[k];

		if (p->used && p->tenant == m->tenant[tenant]) {
			p->load = *load;
			process_begin_load(m, p);
		}
	}
}

void gpu_model_set_share(struct gpu_model *m, int tenant, struct arbiter_share share)
{
	m->tenant[tenant]->share = share;
	if (arbiter_set_share(m->arbiter, tenant, share) < 0)
		abort();
}

void gpu_model_set_limit(struct gpu_model *m, int tenant, double limit_pct)
{
	m->tenant[tenant]->share.limit_pct = limit_pct;
	if (arbiter_set_limit(m->arbiter, tenant, limit_pct) < 0)
		abort();
}

void gpu_model_set_group(struct gpu_model *m, int tenant, uint32_t group, double percentage)
{
	m->tenant[tenant]->group = group;
	m->tenant[tenant]->percentage = percentage;
	if (arbiter_set_space_group(m->arbiter, tenant, group, percentage) < 0)
		abort();
}

void gpu_model_set_stopped(struct gpu_model *m, int tenant, bool stopped)
{
	m->tenant[tenant]->stopped = stopped;
	for (int k = 0; k < m->processes && !stopped; k++) {
		struct model_process *p = m->process[k];

		if (p->used && p->tenant == m->tenant[tenant] && p->thread == THREAD_HELD &&
		    process_is_let_through(m, p)) {
			p->thread = THREAD_WAKES;
			p->thread_at = m->now;
		}
	}
}

/* The run. */

static uint64_t next_event_at(const struct gpu_model *m)
{
	uint64_t at = card_event_at(m);

	if (m->poll_at < at)
		at = m->poll_at;
	for (int k = 0; k < m->processes; k++) {
		const struct model_process *p = m->process[k];
		uint64_t own;

		if (!p->used || p->tenant->stopped)
			continue;
		own = process_thread_at(p);
		if (own < at)
			at = own;
		if (p->flag_falls_at < at)
			at = p->flag_falls_at;
		if (p->report_idle_at < at)
			at = p->report_idle_at;
	}
	return at;
}

void gpu_model_run(struct gpu_model *m, uint64_t duration_ns)
{
	uint64_t end = m->now + duration_ns;

	while (m->now < end) {
		uint64_t at;

		card_schedule(m);
		at = next_event_at(m);
		if (end < at)
			at = end;
		card_advance(m, at > m->now ? at : m->now);
		for (int k = 0; k < m->processes; k++) {
			struct model_process *p = m->process[k];

			if (!p->used || p->tenant->stopped)
				continue;
			if (p->flag_falls_at <= m->now)
				process_flag_falls(m, p);
			if (p->report_idle_at <= m->now)
				process_report_idle(m, p);
			if (process_thread_at(p) <= m->now)
				process_run_thread(m, p);
		}
		if (m->poll_at <= m->now)
			daemon_poll(m);
	}
}

/* Answers. */

uint64_t gpu_model_now_ns(const struct gpu_model *m)
{
	return m->now;
}

struct arbiter *gpu_model_arbiter(struct gpu_model *m)
{
	return m->arbiter;
}

const struct turns *gpu_model_turns(const struct gpu_model *m, int tenant)
{
	return &m->tenant[tenant]->turns;
}

uint64_t gpu_model_process_work_ns(const struct gpu_model *m, int tenant, unsigned process)
{
	return (uint64_t)m->tenant[tenant]->slot_work_ns[process];
}

uint64_t gpu_model_work_ns(const struct gpu_model *m, int tenant)
{
	return (uint64_t)m->tenant[tenant]->work_ns;
}

uint64_t gpu_model_sm_ns(const struct gpu_model *m, int tenant)
{
	return m->tenant[tenant] ? (uint64_t)m->tenant[tenant]->sm_ns : 0;
}

uint64_t gpu_model_kernels(const struct gpu_model *m, int tenant)
{
	return m->tenant[tenant]->kernels;
}

uint64_t gpu_model_bursts(const struct gpu_model *m, int tenant)
{
	return m->tenant[tenant]->bursts;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t quantile(uint64_t *ns, unsigned count, double part)
{
	unsigned rank = (unsigned)(part * count);

	if (!count)
		return 0;
	qsort(ns, count, sizeof(*ns), compare_u64);
	return ns[rank < count ? rank : count - 1];
}

uint64_t gpu_model_latency_ns(struct gpu_model *m, int tenant, double part)
{
	struct model_tenant *t = m->tenant[tenant];

	return quantile(t->latency_ns, t->latency_count, part);
}

uint64_t gpu_model_take_latency_ns(struct gpu_model *m, int tenant, double part)
{
	uint64_t found = gpu_model_latency_ns(m, tenant, part);

	m->tenant[tenant]->latency_count = 0;
	return found;
}

uint64_t gpu_model_take_other_latency_ns(struct gpu_model *m, int tenant, double part)
{
	struct model_tenant *t = m->tenant[tenant];
	uint64_t found = quantile(t->other_latency_ns, t->other_count, part);

	t->other_count = 0;
	return found;
}

uint64_t gpu_model_take_longest_wait_ns(struct gpu_model *m, int tenant)
{
	struct model_tenant *t = m->tenant[tenant];
	uint64_t longest = t->longest_wait_ns;

	for (int k = 0; k < m->processes; k++) {
		const struct model_process *p = m->process[k];

		if (p->used && p->tenant == t && p->thread == THREAD_HELD &&
		    m->now - p->held_since_ns > longest)
			longest = m->now - p->held_since_ns;
	}
	t->longest_wait_ns = 0;
	return longest;
}

uint64_t gpu_model_closings(const struct gpu_model *m, int tenant)
{
	return m->tenant[tenant]->closings;
}

uint64_t gpu_model_steps(const struct gpu_model *m)
{
	return m->steps;
}

uint64_t gpu_model_violations(const struct gpu_model *m)
{
	return m->violations;
}
