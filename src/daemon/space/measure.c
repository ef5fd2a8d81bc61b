#include "daemon/space/measure.h"

#include <time.h>

#include "base/clock.h"
#include "daemon/space/programs.h"

/* A tenant alone is kept from free run for so much of its time at work: then its demand is known. */
#define KEPT_BUSY_S (3 * GAIN_DEMAND_KNOWN_S)

/* Beside others, lengths are bounds from above until each has run alone to be timed: so long nothing is counted. */
#define WARM_TURNS_S 2.0
/* The first pieces of work are of unknown length. */
#define WARM_BUSY_S 0.5

static bool is_measured(const struct tenant *t)
{
	return *t->terms.sharing.program && t->terms.device_count == 1 && t->device[0].lessee &&
	       (t->terms.sharing.way == SHARING_SPACE || t->terms.sharing.is_open);
}

void measure_begin(struct tenant *t)
{
	if (!is_measured(t))
		return;
	t->measured.is_kept = t->terms.sharing.is_open;
	lessee_set_measured(t->device[0].lessee, true, t->measured.is_kept);
}

static double grown(double *last_s, uint64_t now_ns)
{
	double now_s = (double)now_ns / (double)NSEC_PER_SEC, grown_s = now_s - *last_s;
	*last_s = now_s;
	return grown_s > 0 ? grown_s : 0;
}

static void look(struct tenant *t)
{
	struct tenant_measured *m = &t->measured;
	struct arbiter_account a = lessee_figures(t->device[0].lessee).account;
	double busy_s = grown(&m->busy_s, a.busy_ns), pause_s = grown(&m->pause_s, a.pause_ns);
	double filled_s = grown(&m->filled_s, a.filled_ns);
	double done_s = grown(&m->done_s, a.group_done_ns);
	double turns_s = grown(&m->turns_s, a.group_turns_ns);
	if (busy_s + turns_s <= 0)
		return;
	struct gain_record *r = programs_record(t->node, t->terms.sharing.program);
	if (m->busy_s > WARM_BUSY_S)
		gain_add_demand(r, busy_s, pause_s, filled_s);
	if (m->turns_s > WARM_TURNS_S)
		gain_add_measured(r, done_s, turns_s, (int64_t)time(NULL));
	programs_changed(t->node);
	if (m->is_kept && m->busy_s >= KEPT_BUSY_S) {
		m->is_kept = false;
		lessee_set_measured(t->device[0].lessee, true, false);
	}
}

void measure_all(struct node *node)
{
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		if (is_measured(t))
			look(t);
}

void measure_end(struct tenant *t)
{
	if (is_measured(t) && t->node->programs)
		look(t);
}
