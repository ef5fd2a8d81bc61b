#include "gang_model_inside.h"

#include <stdio.h>
#include <stdlib.h>

struct gang_model_config gang_model_default_config(void)
{
	struct gang_model_config config = { .arbiter = arbiter_default_config(),
					    .seed = 1,
					    .devices = 2,
					    .switch_ns = 200 * US,
					    .poll_jitter_ns = 60 * US };

	/* A gang's hand-over cost would lengthen the quantum; the tables are for this fixed one. */
	config.arbiter.quantum_ns = 20 * MS;
	config.arbiter.gang_turn = (struct turn_terms){ 0 };
	return config;
}

static void *must(void *pointer)
{
	if (!pointer)
		abort();
	return pointer;
}

struct gang_model *gang_model_new(const struct gang_model_config *config)
{
	struct gang_model *m = must(calloc(1, sizeof(*m)));

	m->config = *config;
	m->board = must(gang_board_new());
	m->random = config->seed;
	m->now = 1000 * SECOND;
	for (unsigned d = 0; d < config->devices; d++) {
		m->device[d].arbiter = must(arbiter_new(&config->arbiter));
		m->device[d].poll_at = m->now;
		m->device[d].context = -1;
	}
	return m;
}

struct gang_model *gang_model_free(struct gang_model *m)
{
	if (!m)
		return NULL;
	for (unsigned d = 0; d < m->config.devices; d++)
		arbiter_free(m->device[d].arbiter);
	for (int i = 0; i < m->count; i++)
		free(m->tenant[i]);
	gang_board_free(m->board);
	free(m);
	return NULL;
}

int gang_model_add(struct gang_model *m, struct arbiter_share share,
		   const struct gang_model_load *load)
{
	int i = 0;
	struct model_tenant *t;

	while (m->tenant[i] && m->tenant[i]->used)
		if (++i == GANG_MODEL_TENANTS)
			abort();
	free(m->tenant[i]);
	t = m->tenant[i] = must(calloc(1, sizeof(*t)));
	if (i >= m->count)
		m->count = i + 1;
	t->used = true;
	t->load = *load;
	t->gang = !m->config.is_off && (load->devices & (load->devices - 1)) ? gang_add(m->board)
									     : -1;
	for (unsigned d = 0; d < m->config.devices; d++) {
		struct rank *r = &t->rank[d];

		if (!has_rank(t, d))
			continue;
		r->index = arbiter_add(m->device[d].arbiter, m->now, share);
		if (r->index < 0)
			abort();
		r->word = LEASE_STOP;
		r->runs_at = r->asked_at = m->now + random_between(&m->random, 0, MS);
		r->progress_at = m->now;
		r->kernels_left = load->kernels;
	}
	return i;
}

void gang_model_remove(struct gang_model *m, int tenant)
{
	struct model_tenant *t = m->tenant[tenant];

	for (unsigned d = 0; d < m->config.devices; d++)
		if (has_rank(t, d))
			arbiter_remove(m->device[d].arbiter, t->rank[d].index);
	if (t->gang >= 0)
		gang_remove(m->board, t->gang);
	t->used = false;
}

void gang_model_set_load(struct gang_model *m, int tenant, const struct gang_model_load *load)
{
	m->tenant[tenant]->load = *load;
}

void gang_model_set_stopped(struct gang_model *m, int tenant, bool stopped)
{
	m->tenant[tenant]->stopped = stopped;
}

/* The ranks' threads. */

static bool has_room(const struct gang_model *m, const struct rank *r)
{
	uint64_t depth = r->is_slip ? 1 : r->word == LEASE_GO ? r->depth_ns : FREE_DEPTH_NS;

	return queued(r) < QUEUE && (queued(r) < 2 || r->inflight_ns < depth);
}

static void push(struct gang_model *m, struct rank *r, struct kernel kernel)
{
	r->queue[r->tail++ % QUEUE] = kernel;
	r->inflight_ns += kernel.predicted_ns;
	r->busy = true;
	r->flag_falls_at = UINT64_MAX;
	r->launches++;
	(void)m;
}

static void end_round(struct gang_model *m, struct model_tenant *t, struct rank *r)
{
	const struct gang_model_load *l = &t->load;

	r->rounds++;
	r->kernels_left = l->kernels;
	if (l->sync_every && r->rounds % l->sync_every == 0)
		r->joins = true;
	(void)m;
}

static uint64_t median(const uint64_t v[3])
{
	uint64_t low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0];

	return v[2] < low ? low : v[2] > high ? high : v[2];
}

static void launch(struct gang_model *m, struct model_tenant *t, struct rank *r)
{
	const struct gang_model_load *l = &t->load;
	struct kernel k = { .left_ns = l->kernel_ns };

	if (r->kernels_left) {
		if (l->kernel_max_ns)
			k.left_ns = random_between(&m->random, l->kernel_ns, l->kernel_max_ns);
		k.predicted_ns = k.left_ns;
		push(m, r, k);
		r->kernels_left--;
		if (!r->kernels_left && (!l->collective_ns || l->only))
			end_round(m, t, r);
		return;
	}
	k = (struct kernel){ .left_ns = l->collective_ns,
			     .predicted_ns = median(r->lasted_ns),
			     .is_collective = true,
			     .number = r->collectives++ };
	push(m, r, k);
	end_round(m, t, r);
}

/* The thread's time for its launch, and for other work. */
static void pass_time(struct gang_model *m, const struct gang_model_load *l, struct rank *r)
{
	if (!l->launch_ns)
		return;
	if (r->runs_at + TICK_NS < m->now)
		r->runs_at = m->now;
	r->runs_at += l->launch_ns;
	if (l->stall_every && r->launches % l->stall_every == 0)
		r->runs_at += random_between(&m->random, 0, l->stall_max_ns);
}

static void ring(struct gang_model *m, unsigned d)
{
	uint64_t at = m->now + random_between(&m->random, 0, POKE_NS);

	if (m->device[d].poll_at > at)
		m->device[d].poll_at = at;
}

/* It has waited for all of its work. */
static void rest(struct gang_model *m, struct model_tenant *t, unsigned d)
{
	struct rank *r = &t->rank[d];

	r->joins = false;
	if (!t->load.collective_ns && t->length_count < LENGTHS)
		t->length_ns[t->length_count++] = m->now - r->asked_at;
	r->runs_at = m->now + random_between(&m->random, t->load.think_ns, t->load.think_max_ns);
	r->asked_at = r->runs_at;
	if (!t->load.reports_sync_points)
		return;
	r->sync_points++;
	if (arbiter_wants_sync_point(m->device[d].arbiter, r->index))
		ring(m, d);
}

static void run_thread(struct gang_model *m, struct model_tenant *t, unsigned d)
{
	struct rank *r = &t->rank[d];

	if (t->stopped || !t->load.kernel_ns || (t->load.only && !(t->load.only >> d & 1))) {
		r->is_held = false;
		return;
	}
	if (r->joins && !queued(r))
		rest(m, t, d);
	for (int i = 0; i < LAUNCHES_PER_TICK && !r->joins && m->now >= r->runs_at; i++) {
		if (r->word != LEASE_GO && r->word != LEASE_FREE) {
			r->is_held = true;
			return;
		}
		r->is_held = false;
		if (!has_room(m, r))
			return;
		launch(m, t, r);
		pass_time(m, &t->load, r);
	}
}

/* The daemon's threads. */

static void violation(struct gang_model *m, const char *what, unsigned d)
{
	if (m->violations++ < 5)
		fprintf(stderr, "violation at %.6f s, device %u: %s\n",
			(double)(m->now - 1000 * SECOND) / (double)SECOND, d, what);
}

static void check(struct gang_model *m, unsigned d)
{
	int going = 0;
	uint64_t owned = 0;

	for (int i = 0; i < m->count; i++)
		if (has_rank(m->tenant[i], d))
			going += arbiter_state(m->device[d].arbiter, m->tenant[i]->rank[d].index) ==
				 LEASE_GO;
	if (going > 1 && arbiter_mode(m->device[d].arbiter) == ARBITER_LEASES)
		violation(m, "two tenants in GO", d);
	for (int i = 0; i < m->count; i++) {
		const struct model_tenant *t = m->tenant[i];
		enum gang_order order;

		if (!has_rank(t, d) || t->gang < 0)
			continue;
		order = gang_command(m->board, t->gang, d).order;
		if (order == GANG_GATHER || order == GANG_GO)
			owned++;
	}
	if (owned > 1)
		violation(m, "two gangs at one device", d);
}

static void observe(struct gang_model *m, unsigned d)
{
	for (int i = 0; i < m->count; i++) {
		const struct model_tenant *t = m->tenant[i];
		const struct rank *r;

		if (!has_rank(t, d))
			continue;
		r = &t->rank[d];
		arbiter_observe(m->device[d].arbiter, r->index,
				&(struct arbiter_observation){ .waiting = r->is_held,
							       .busy = r->busy,
							       .stopped = t->stopped,
							       .inflight_ns = r->inflight_ns,
							       .busy_ns = r->busy_ns,
							       .launches = r->launches,
							       .ramp_ns = r->ramp_ns,
							       .sync_points = r->sync_points });
	}
}

/* Tells the board, and hears from it; true when there is news. */
static bool exchange(struct gang_model *m, unsigned d)
{
	bool news = false;
	uint64_t changed;

	for (int i = 0; i < m->count; i++) {
		struct gang_report report;

		if (!has_rank(m->tenant[i], d))
			continue;
		report = arbiter_gang_report(m->device[d].arbiter, m->tenant[i]->rank[d].index);
		gang_set_report(m->board, m->tenant[i]->gang, d, &report);
	}
	changed = gang_decide(m->board, m->now);
	for (unsigned e = 0; e < m->config.devices; e++)
		if (e != d && changed >> e & 1 && m->device[e].poll_at > m->now + POKE_NS)
			m->device[e].poll_at = m->now + random_between(&m->random, 0, POKE_NS);
	for (int i = 0; i < m->count; i++)
		if (has_rank(m->tenant[i], d))
			news |= arbiter_set_gang(m->device[d].arbiter, m->tenant[i]->rank[d].index,
						 gang_command(m->board, m->tenant[i]->gang, d));
	return news;
}

/* As the daemon publishes it (src/daemon/arbitrate/arbitration.c). */
static void publish(struct gang_model *m, const struct model_tenant *t, struct rank *r, unsigned d)
{
	struct arbiter *arbiter = m->device[d].arbiter;
	enum lease_state word = arbiter_state(arbiter, r->index);

	if ((t->gang >= 0 || word != r->word) && word == LEASE_GO)
		r->depth_ns = arbiter_depth_ns(arbiter, r->index, FREE_DEPTH_NS);
	if (word != r->word)
		r->has_lead = false;
	r->word = word;
	r->is_slip = gang_command(m->board, t->gang, d).is_slip;
}

static void poll(struct gang_model *m, unsigned d)
{
	struct device *g = &m->device[d];
	uint64_t next;
	int round = 0;

	observe(m, d);
	do
		next = arbiter_step(g->arbiter, m->now);
	while (exchange(m, d) && ++round < 4);
	if (next <= m->now)
		violation(m, "asked to be stepped in the past", d);
	g->poll_at = next + random_between(&m->random, 0, m->config.poll_jitter_ns);
	for (int i = 0; i < m->count; i++) {
		struct rank *r;

		if (!has_rank(m->tenant[i], d))
			continue;
		r = &m->tenant[i]->rank[d];
		publish(m, m->tenant[i], r, d);
		if (r->is_held && (r->word == LEASE_GO || r->word == LEASE_FREE))
			r->runs_at = m->now + random_between(&m->random, 20 * US, 80 * US);
	}
	check(m, d);
}

/* As the library's helper does. */
static void watch_ramp(const struct model_tenant *t, struct rank *r)
{
	if (!t->load.reports_sync_points || r->word != LEASE_GO || r->has_lead)
		return;
	r->has_lead = 2 * r->inflight_ns >= r->depth_ns;
	r->ramp_ns += r->busy && !r->has_lead ? TICK_NS : 0;
}

static void run_rank(struct gang_model *m, struct model_tenant *t, unsigned d)
{
	struct rank *r = &t->rank[d];

	run_thread(m, t, d);
	if (r->flag_falls_at <= m->now && !t->stopped) {
		r->busy = false;
		r->flag_falls_at = UINT64_MAX;
	}
	r->busy_ns += r->busy ? TICK_NS : 0;
	watch_ramp(t, r);
	if (!r->is_held && !queued(r))
		r->progress_at = m->now;
	if (m->now - r->progress_at > r->longest_wait_ns)
		r->longest_wait_ns = m->now - r->progress_at;
}

void gang_model_run(struct gang_model *m, uint64_t duration_ns)
{
	uint64_t end = m->now + duration_ns;

	for (; m->now < end; m->now += TICK_NS) {
		for (unsigned d = 0; d < m->config.devices; d++)
			gang_card_run(m, d);
		for (int i = 0; i < m->count; i++)
			for (unsigned d = 0; d < m->config.devices; d++)
				if (has_rank(m->tenant[i], d))
					run_rank(m, m->tenant[i], d);
		for (unsigned d = 0; d < m->config.devices; d++)
			if (m->device[d].poll_at <= m->now)
				poll(m, d);
	}
}

/* Answers. */

uint64_t gang_model_work_ns(const struct gang_model *m, int tenant, unsigned device)
{
	return m->tenant[tenant]->rank[device].work_ns;
}

uint64_t gang_model_spin_ns(const struct gang_model *m, int tenant, unsigned device)
{
	return m->tenant[tenant]->rank[device].spin_ns;
}

uint64_t gang_model_collectives(const struct gang_model *m, int tenant)
{
	return m->tenant[tenant]->collectives;
}

uint64_t gang_model_take_longest_collective_ns(struct gang_model *m, int tenant)
{
	struct model_tenant *t = m->tenant[tenant];
	uint64_t longest = t->longest_ns;

	/* A round that has not ended counts as well. */
	for (int i = 0; i < COLLECTIVES; i++)
		if (t->collective[i].begun && m->now - t->collective[i].begun_ns > longest)
			longest = m->now - t->collective[i].begun_ns;
	t->longest_ns = 0;
	t->length_count = 0;
	return longest;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t gang_model_take_collective_ns(struct gang_model *m, int tenant, double part)
{
	struct model_tenant *t = m->tenant[tenant];
	unsigned count = t->length_count, rank = (unsigned)(part * count);

	t->length_count = 0;
	if (!count)
		return 0;
	qsort(t->length_ns, count, sizeof(t->length_ns[0]), compare_u64);
	return t->length_ns[rank < count ? rank : count - 1];
}

uint64_t gang_model_take_longest_wait_ns(struct gang_model *m, int tenant)
{
	uint64_t longest = 0;

	for (unsigned d = 0; d < m->config.devices; d++) {
		struct rank *r = &m->tenant[tenant]->rank[d];

		if (!has_rank(m->tenant[tenant], d))
			continue;
		if (r->longest_wait_ns > longest)
			longest = r->longest_wait_ns;
		r->longest_wait_ns = 0;
	}
	return longest;
}

struct arbiter *gang_model_arbiter(struct gang_model *m, unsigned device)
{
	return m->device[device].arbiter;
}

int gang_model_index(const struct gang_model *m, int tenant, unsigned device)
{
	return m->tenant[tenant]->rank[device].index;
}

const struct gang_board *gang_model_board(const struct gang_model *m)
{
	return m->board;
}

int gang_model_gang(const struct gang_model *m, int tenant)
{
	return m->tenant[tenant]->gang;
}

uint64_t gang_model_violations(const struct gang_model *m)
{
	return m->violations;
}
