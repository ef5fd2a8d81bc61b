#include "gang_model_inside.h"

static bool has_work(const struct gang_model *m, int i, unsigned d)
{
	return i >= 0 && has_rank(m->tenant[i], d) && queued(&m->tenant[i]->rank[d]);
}

static int next_context(const struct gang_model *m, unsigned d)
{
	for (int k = 1; k <= m->count; k++) {
		int i = (m->device[d].context + k) % m->count;

		if (has_work(m, i, d))
			return i;
	}
	return -1;
}

/* Decides what the GPU runs in this tick. Returns false if nothing. */
static bool schedule(struct gang_model *m, unsigned d)
{
	struct device *g = &m->device[d];
	int next;

	if (m->now < g->gap_until)
		return false;
	next = next_context(m, d);
	if (next < 0)
		return false;
	if (next == g->context || (has_work(m, g->context, d) && m->now < g->slice_ends)) {
		if (next == g->context)
			g->slice_ends = m->now + SLICE_NS;
		return true;
	}
	g->gap_until = m->now + (has_work(m, g->context, d) ? SLICE_GAP_NS
				 : g->context < 0           ? 0
							    : m->config.switch_ns);
	g->context = next;
	g->slice_ends = g->gap_until + SLICE_NS;
	return m->now >= g->gap_until;
}

static void end_collective(struct gang_model *m, struct model_tenant *t, struct collective *c)
{
	uint64_t length_ns = m->now - c->begun_ns;

	t->collectives++;
	if (length_ns > t->longest_ns)
		t->longest_ns = length_ns;
	if (t->length_count < LENGTHS)
		t->length_ns[t->length_count++] = length_ns;
	*c = (struct collective){ 0 };
}

/* It is off its queue. */
static void end_kernel(struct gang_model *m, struct model_tenant *t, unsigned d,
		       const struct kernel *k)
{
	struct rank *r = &t->rank[d];

	r->inflight_ns -= k->predicted_ns;
	if (!queued(r))
		r->flag_falls_at = m->now + random_between(&m->random, 25 * US, 75 * US);
	if (k->is_collective) {
		struct collective *c = &t->collective[k->number % COLLECTIVES];

		c->ended |= 1u << d;
		r->lasted_ns[t->collectives % 3] = m->now - r->begun_at;
		r->begun_at = 0;
		if (c->ended == t->load.devices)
			end_collective(m, t, c);
	}
}

/* The collective begins here, if it has not; false: it has elsewhere not, and spins. */
static bool meets(struct gang_model *m, struct model_tenant *t, unsigned d, const struct kernel *k)
{
	struct collective *c = &t->collective[k->number % COLLECTIVES];
	struct rank *r = &t->rank[d];

	if (!r->begun_at)
		r->begun_at = m->now;
	if (!c->begun)
		c->begun_ns = m->now;
	c->begun |= 1u << d;
	return c->begun == t->load.devices;
}

/* One tick of the kernel at the head of a queue. Returns whether it did work. */
static bool run_kernel(struct gang_model *m, struct model_tenant *t, unsigned d, struct kernel *k,
		       unsigned *head)
{
	if (k->is_collective && !meets(m, t, d, k))
		return false;
	k->left_ns -= k->left_ns < TICK_NS ? k->left_ns : TICK_NS;
	if (!k->left_ns) {
		++*head;
		end_kernel(m, t, d, k);
	}
	return true;
}

/* A collective at the head of the queue that runs beside the work behind it. */
static void set_beside(struct rank *r)
{
	while (r->head != r->tail && r->queue[r->head % QUEUE].is_collective &&
	       r->beside_tail - r->beside_head < BESIDE)
		r->beside[r->beside_tail++ % BESIDE] = r->queue[r->head++ % QUEUE];
}

void gang_card_run(struct gang_model *m, unsigned d)
{
	struct model_tenant *t;
	struct rank *r;
	bool works = false;

	if (!schedule(m, d))
		return;
	t = m->tenant[m->device[d].context];
	r = &t->rank[d];
	if (t->load.overlaps)
		set_beside(r);
	if (r->beside_head != r->beside_tail)
		works = run_kernel(m, t, d, &r->beside[r->beside_head % BESIDE], &r->beside_head);
	if (r->head != r->tail && !(t->load.overlaps && r->queue[r->head % QUEUE].is_collective))
		works |= run_kernel(m, t, d, &r->queue[r->head % QUEUE], &r->head);
	if (!works) {
		r->spin_ns += TICK_NS;
		return;
	}
	r->progress_at = m->now;
	r->work_ns += TICK_NS;
}
