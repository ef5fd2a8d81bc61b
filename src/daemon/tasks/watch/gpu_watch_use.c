/* Estimates how much memory and GPU time tasks (processes that use a GPU) and their containers use between censuses. */
#include "base/clock.h"
#include "daemon/gpu/census.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/watch/gpu_watch_inside.h"
#include "daemon/tasks/watch/use_state.h"
#include "policy/safety/gpu_account.h"

static const struct gpu_process *find_listed(const struct census_card *seen, int pid)
{
	for (size_t i = 0; i < seen->process_count; i++)
		if (seen->process[i].pid == pid)
			return &seen->process[i];
	return NULL;
}

static const struct gpu_use *find_use(const struct census_card *seen, int pid)
{
	for (size_t i = 0; seen->use_known && i < seen->use_count; i++)
		if (seen->use[i].pid == pid)
			return &seen->use[i];
	return NULL;
}

/* Returns true if the last sample still counts: sampling periods may exceed the interval of censuses. */
static bool has_recent_sample(const struct gpu_task_card *c, uint64_t now_ns)
{
	return c->sampled_ns && now_ns - c->sampled_ns < 3 * GPU_ACCOUNT_SAMPLE_NS;
}

/* Returns true if a task without a tenant may be working on the card but is in none of the driver's samples. */
static bool is_unlisted(const struct gpu_task *t, unsigned card, const struct census_card *seen,
			uint64_t now_ns)
{
	return !t->tenant[0] && !(t->container && t->container->is_frozen) &&
	       find_listed(seen, t->pid) && !find_use(seen, t->pid) &&
	       !has_recent_sample(&t->card[card], now_ns);
}

/* Returns the share of each unlisted task: the busy time that neither samples nor leases explain is divided equally. */
static double unlisted_share(struct gpu_watch *w, unsigned card, const struct census_card *seen,
			     uint64_t now_ns)
{
	const struct gpu_task *t;
	double listed = 0;
	unsigned unlisted = 0;
	TAILQ_FOREACH(t, &w->tasks->live, link) {
		const struct gpu_use *use = find_use(seen, t->pid);
		if (!t->tenant[0] && use)
			listed += use->share;
		else if (!t->tenant[0] && has_recent_sample(&t->card[card], now_ns))
			listed += t->card[card].sample_share;
		unlisted += is_unlisted(t, card, seen, now_ns);
	}
	return gpu_account_unlisted(
		seen->busy_share, listed,
		arbitration_figures(w->node->card[card].arbitration).busy_pct / 100, unlisted);
}

static void count_use(struct gpu_task *t, unsigned card, const struct census_card *seen,
		      bool is_present, double unlisted, uint64_t now_ns)
{
	struct gpu_task_card *c = &t->card[card];
	const struct gpu_use *use = find_use(seen, t->pid);
	uint64_t frozen_ns = t->container ? freezer_frozen_ns(t->container, now_ns) : 0;
	struct gpu_account_interval i = {
		.passed_ns = now_ns - (c->seen_ns ? c->seen_ns : t->begun_ns),
		.frozen_ns = frozen_ns - c->frozen_ns,
		.was_present = c->is_present,
		.is_present = is_present,
		.has_samples = seen->use_known,
		.has_sample = use != NULL,
		.share = use ? use->share : 0,
	};
	if (use && c->sample_us && use->stamp_us > c->sample_us)
		i.gap_ns = (use->stamp_us - c->sample_us) * 1000;
	if (unlisted > 0 && is_unlisted(t, card, seen, now_ns)) {
		i.has_sample = true;
		i.share = unlisted;
		i.gap_ns = i.passed_ns;
	}
	if (use) {
		c->sample_us = use->stamp_us;
		c->sample_share = use->share;
		c->sampled_ns = now_ns;
	}
	c->seen_ns = now_ns;
	if (i.has_sample || !seen->use_known)
		c->frozen_ns = frozen_ns;
	if (!t->tenant[0])
		gpu_task_use(t, card, gpu_account_ns(&i));
}

static void count_task(struct gpu_task *t, unsigned card, const struct census_card *seen,
		       double unlisted, uint64_t now_ns)
{
	struct gpu_task_card *c = &t->card[card];
	const struct gpu_process *listed = find_listed(seen, t->pid);
	uint64_t held = listed && listed->used_known ? listed->used_bytes : 0;
	count_use(t, card, seen, listed != NULL, unlisted, now_ns);
	if (t->container) {
		struct gpu_task_card *sum = &t->container->card[card];
		sum->held_bytes += held - c->held_bytes;
		if (sum->held_bytes > sum->most_bytes)
			sum->most_bytes = sum->held_bytes;
	}
	c->is_present = listed != NULL;
	c->held_bytes = held;
	if (held > c->most_bytes)
		c->most_bytes = held;
}

static void count_card(struct gpu_watch *w, unsigned card, const struct census_card *seen,
		       uint64_t now_ns)
{
	struct gpu_task *t;
	double unlisted = seen->use_known && seen->busy_known ? unlisted_share(w, card, seen, now_ns)
							      : 0;
	TAILQ_FOREACH(t, &w->tasks->live, link)
		count_task(t, card, seen, unlisted, now_ns);
}

/* Divides the time of a tenant's leases among its processes, by their recent busy time (recent_us in their slots). */
static void count_tenant(struct gpu_watch *w, struct tenant *t)
{
	for (unsigned d = 0; d < t->terms.device_count; d++) {
		uint64_t charged = lessee_figures(t->device[d].lessee).account.charged_ns;
		uint64_t more = charged - t->device[d].attributed_ns, weights = 0;
		t->device[d].attributed_ns = charged;
		if (!more || charged < more)
			continue;
		for (unsigned pass = 0; pass < 2; pass++)
			for (unsigned i = 0; i < t->slot_limit; i++) {
				const struct process *p = t->process[i];
				struct gpu_task *task = p ? gpu_tasks_find(w->tasks, p->pid) : NULL;
				if (!task)
					continue;
				uint64_t weight =
					1 +
					atomic_load(&t->region.report->slot[i].device[d].recent_us);
				if (pass == 0)
					weights += weight;
				else
					gpu_task_use(task, t->terms.device[d].card->index,
						     (uint64_t)((double)more * (double)weight /
								(double)weights));
			}
	}
}

static void fade_all(struct gpu_watch *w, uint64_t now_ns)
{
	struct gpu_container *c;
	TAILQ_FOREACH(c, &w->tasks->containers, link) {
		uint64_t used_ns = 0;
		for (unsigned i = 0; i < w->tasks->card_count; i++)
			used_ns += c->card[i].used_ns;
		if (used_ns != c->faded_ns)
			node_save_use_soon(w->node);
		fade_add(&c->fade, now_ns, used_ns - c->faded_ns, w->node->config.use_half_life_ns);
		c->faded_ns = used_ns;
	}
}

void gpu_watch_count(struct gpu_watch *w, const struct census_card *cards)
{
	uint64_t now_ns = clock_now_ns();
	struct tenant *t;
	for (unsigned i = 0; i < w->tasks->card_count; i++)
		if (cards[i].processes_known)
			count_card(w, i, &cards[i], now_ns);
	TAILQ_FOREACH(t, &w->node->tenants, link)
		count_tenant(w, t);
	fade_all(w, now_ns);
}
