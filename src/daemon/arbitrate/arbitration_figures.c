#include "daemon/arbitrate/arbitration_inside.h"

#include "base/log.h"
#include "daemon/arbitrate/arbitration.h"

/* Interval of ticks while every tenant has is_quiet: only heartbeats are due then. */
#define TICK_QUIET_NS UINT64_C(90000000)

void arbitration_count_charge(struct arbitration *a, struct lessee *l, uint64_t charged_ns)
{
	a->charged_ns += charged_ns - l->charged_counted_ns;
	l->charged_counted_ns = charged_ns;
}

/* Publishes what NVML reports to the tenant. Returns false if all values are zero and stay so until the next charge. */
static bool publish_use(struct lessee *l, uint64_t now_ns, uint64_t charged_ns)
{
	double pct = window_pct(&l->window_1s, now_ns, charged_ns);
	atomic_store_explicit(&l->control->device[l->device].got_1s_pct_x100,
			      (uint32_t)(pct < 100 ? pct * 100 : 10000), memory_order_relaxed);
	return observer_publish_recent(&l->observer, l->report) || pct > 0;
}

static void sample(struct lessee *l, uint64_t now_ns, uint64_t charged_ns)
{
	window_add(&l->window_1s, now_ns, charged_ns);
	window_add(&l->window_60s, now_ns, charged_ns);
	window_add(&l->unauthorized_1s, now_ns,
		   arbiter_unauthorized_ns(l->owner->arbiter, l->index));
	window_add(&l->wanted_60s, now_ns, l->wanted_ns);
}

/* A paused tenant wants nothing. With policy feedback, the arbiter counts no waits, so the waits seen at the ticks count. */
static void count_wanted(struct lessee *l, uint64_t now_ns, uint64_t charged_ns)
{
	uint64_t waited_ns = arbiter_account(l->owner->arbiter, l->index).waited_ns;
	uint64_t charge_ns = charged_ns - l->charged_at_tick_ns;
	uint64_t wait_ns = waited_ns - l->waited_at_tick_ns;

	if (l->owner->is_paced && l->seen.waiting && now_ns - l->tick_ns > charge_ns)
		wait_ns = now_ns - l->tick_ns - charge_ns;
	l->wanted_ns += charge_ns + (l->paused || l->seen.stopped ? 0 : wait_ns);
	l->waited_at_tick_ns = waited_ns;
}

/* Returns true (is_quiet) if nothing was charged since the last tick, and all published values are zero. */
static bool tick_lessee(struct lessee *l, uint64_t now_ns)
{
	uint64_t charged_ns = arbiter_charged_ns(l->owner->arbiter, l->index);
	bool is_charged = charged_ns != l->charged_at_tick_ns;

	atomic_fetch_add_explicit(&l->control->heartbeat, 1, memory_order_release);
	step_window_read(&l->steps, &l->report->steps[l->device], now_ns);
	count_wanted(l, now_ns, charged_ns);
	if (l->is_quiet && !is_charged) {
		l->tick_ns = now_ns;
		return true;
	}
	/* After a time without charges, first add a sample for its end, so that the windows show that time as idle. */
	if (l->is_quiet)
		sample(l, l->tick_ns, l->charged_at_tick_ns);
	sample(l, now_ns, charged_ns);
	arbitration_count_charge(l->owner, l, charged_ns);
	l->is_quiet = !publish_use(l, now_ns, charged_ns) && !is_charged;
	l->tick_ns = now_ns;
	l->charged_at_tick_ns = charged_ns;
	return l->is_quiet;
}

static void lend(struct arbitration *a, uint64_t now_ns)
{
	struct lend_tenant *tenants[ARBITER_MAX_TENANTS];
	double before_pct[ARBITER_MAX_TENANTS];
	size_t count = 0;
	for (struct lessee *l = a->lessees; l; l = l->next) {
		struct arbiter_account account = arbiter_account(a->arbiter, l->index);
		l->elastic.charged_ns = account.charged_ns;
		l->elastic.waited_ns = account.waited_ns;
		l->elastic.absent = l->paused || l->seen.stopped;
		before_pct[count] = l->elastic.limit_now_pct;
		tenants[count++] = &l->elastic;
	}
	lend_decide(&a->elastic, tenants, count, now_ns - a->limits_decided_ns);
	count = 0;
	for (struct lessee *l = a->lessees; l; l = l->next, count++) {
		l->lends += l->elastic.limit_now_pct > before_pct[count];
		l->reclaims += l->elastic.limit_now_pct < before_pct[count];
		arbiter_set_limit(a->arbiter, l->index, l->elastic.limit_now_pct);
	}
	a->limits_decided_ns = now_ns;
}

/* The thread may sleep if this tenant has no work, demand or lent limit, and detects the daemon's end without a heartbeat. */
static bool permits_sleep(const struct lessee *l)
{
	for (size_t i = 0; i < l->observer.count; i++)
		if (!atomic_load(&l->report->slot[l->observer.process[i].slot].heeds_owner))
			return false;
	return l->is_quiet && !l->seen.waiting && l->elastic.limit_now_pct == l->elastic.limit_pct &&
	       (l->paused || l->published == LEASE_GO || l->published == LEASE_FREE) &&
	       atomic_load(&l->control->owner);
}

bool arbitration_may_sleep(const struct arbitration *a)
{
	if (a->needs_polling || a->spans || arbiter_mode(a->arbiter) != ARBITER_IDLE)
		return false;
	for (const struct lessee *l = a->lessees; l; l = l->next)
		if (!permits_sleep(l))
			return false;
	return true;
}

void arbitration_tick(struct arbitration *a, uint64_t now_ns)
{
	bool is_quiet = true;
	for (struct lessee *l = a->lessees; l; l = l->next)
		is_quiet = tick_lessee(l, now_ns) && is_quiet;
	window_add(&a->window_1s, now_ns, a->charged_ns);
	if (now_ns - a->limits_decided_ns >= a->elastic.period_ns)
		lend(a, now_ns);
	a->is_sleeping = is_quiet && arbitration_may_sleep(a);
	a->next_tick_ns = now_ns + (a->is_sleeping ? ARBITRATION_SLEEP_NS
				    : is_quiet     ? TICK_QUIET_NS
						   : ARBITRATION_TICK_NS);
}

bool arbitration_is_sleeping(struct arbitration *a)
{
	pthread_mutex_lock(&a->worker.lock);
	bool is_sleeping = a->is_sleeping;
	pthread_mutex_unlock(&a->worker.lock);
	return is_sleeping;
}

static bool find_use(const struct lessee *l, const struct gpu_use *list, size_t count, double *ret)
{
	bool is_named = false;
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t p = 0; p < l->observer.count; p++)
			if (l->observer.process[p].pid == list[i].pid) {
				is_named = true;
				sum += list[i].share;
			}
	*ret = sum < 1 ? sum : 1;
	return is_named;
}

bool arbitration_is_unlisted(unsigned *unlisted, bool has_worked, bool is_named)
{
	if (is_named)
		*unlisted = 0;
	else if (has_worked)
		++*unlisted;
	return *unlisted >= ARBITRATION_UNLISTED;
}

void arbitration_set_use(struct arbitration *a, const struct gpu_use *list, size_t count)
{
	bool is_missing = false;
	pthread_mutex_lock(&a->worker.lock);
	for (struct lessee *l = a->lessees; l; l = l->next) {
		l->has_use = find_use(l, list, count, &l->use);
		bool was_unlisted = l->is_unlisted;
		l->is_unlisted = arbitration_is_unlisted(
			&l->unlisted, l->observer.busy_ns != l->use_busy_ns, l->has_use);
		is_missing |= l->is_unlisted;
		a->unlisted_count += l->is_unlisted && !was_unlisted;
		l->use_busy_ns = l->observer.busy_ns;
	}
	bool must_log = is_missing && !a->is_missing_logged;
	a->is_missing_logged |= must_log;
	pthread_mutex_unlock(&a->worker.lock);
	if (must_log)
		log_warning(
			"feedback_sensor nvml: NVML reports no utilization of a process that uses the "
			"GPU: the busy time that allot measures is used instead");
}

struct arbitration_figures arbitration_figures(struct arbitration *a)
{
	pthread_mutex_lock(&a->worker.lock);
	for (struct lessee *l = a->lessees; l; l = l->next)
		arbitration_count_charge(a, l, arbiter_charged_ns(a->arbiter, l->index));
	double pct = window_pct(&a->window_1s, clock_now_ns(), a->charged_ns);
	struct arbitration_figures f = { .busy_pct = pct < 100 ? pct : 100,
					 .charged_ns = a->charged_ns,
					 .quantum_ns = arbiter_quantum_ns(a->arbiter),
					 .handover_ns = arbiter_handover_ns(a->arbiter),
					 .unlisted = a->unlisted_count };
	pthread_mutex_unlock(&a->worker.lock);
	return f;
}
