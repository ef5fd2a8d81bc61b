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

/* Decides what the GPU does in this tick; false: nothing. */
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

static void end_kernel(struct gang_model *m, struct model_tenant *t, unsigned d)
{
	struct rank *r = &t->rank[d];
	struct kernel *k = &r->queue[r->head++ % QUEUE];

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

void gang_card_run(struct gang_model *m, unsigned d)
{
	struct model_tenant *t;
	struct rank *r;
	struct kernel *k;

	if (!schedule(m, d))
		return;
	t = m->tenant[m->device[d].context];
	r = &t->rank[d];
	k = &r->queue[r->head % QUEUE];
	if (k->is_collective) {
		struct collective *c = &t->collective[k->number % COLLECTIVES];

		if (!r->begun_at)
			r->begun_at = m->now;
		if (!c->begun)
			c->begun_ns = m->now;
		c->begun |= 1u << d;
		if (c->begun != t->load.devices) {
			r->spin_ns += TICK_NS;
			return;
		}
	}
	r->progress_at = m->now;
	r->work_ns += TICK_NS;
	k->left_ns -= k->left_ns < TICK_NS ? k->left_ns : TICK_NS;
	if (!k->left_ns)
		end_kernel(m, t, d);
}
