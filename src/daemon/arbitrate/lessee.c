#include "daemon/arbitrate/arbitration_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/arbitrate/arbitration.h"
#include "daemon/arbitrate/region_host.h"

int lessee_add(struct arbitration *a, struct region_control *control, struct region_report *report,
	       unsigned device, struct arbiter_share share, uint64_t owner, struct lessee **ret,
	       struct error *err)
{
	struct lessee *l = aligned_alloc(_Alignof(struct lessee), sizeof(*l));
	if (!l)
		return error_set_errno(err, ENOMEM, "lessee");
	*l = (struct lessee){ .owner = a,
			      .control = control,
			      .report = report,
			      .device = device,
			      .gang = -1,
			      .observer = { .report = report, .device = device },
			      .elastic = { .cores_pct = share.cores_pct,
					   .limit_pct = share.limit_pct,
					   .limit_now_pct = share.limit_pct } };

	snprintf(l->tenant, sizeof(l->tenant), "%s", control->tenant_name);
	doorbell_init(&l->doorbell, &report->bell[device].ring_count);
	pthread_mutex_lock(&a->worker.lock);
	uint64_t now_ns = clock_now_ns();
	l->index = arbiter_add(a->arbiter, now_ns, share);
	if (l->index >= 0) {
		arbiter_set_owner(a->arbiter, l->index, owner);
		window_init(&l->window_1s, NSEC_PER_SEC, now_ns, 0);
		window_init(&l->window_60s, 60 * NSEC_PER_SEC, now_ns, 0);
		window_init(&l->unauthorized_1s, NSEC_PER_SEC, now_ns, 0);
		window_init(&l->wanted_60s, 60 * NSEC_PER_SEC, now_ns, 0);
		l->tick_ns = now_ns;
		step_window_init(&l->steps, now_ns);
		l->next = a->lessees;
		a->lessees = l;
		a->lessee_count++;
		doorbell_wake(&a->changed);
	}
	pthread_mutex_unlock(&a->worker.lock);

	if (l->index < 0) {
		int e = -l->index;
		free(l);
		return e == ENOSPC
			       ? error_set(err, e,
					   "the GPU has %d tenants already, the most allowed: "
					   "end one first",
					   ARBITER_MAX_TENANTS)
			       : error_set_errno(
					 err, e,
					 "the tenant can't get its share of GPU time: a fault of allotd, please report it");
	}
	*ret = l;
	return 0;
}

struct lessee *lessee_remove(struct lessee *lessee)
{
	if (!lessee)
		return NULL;
	struct arbitration *a = lessee->owner;
	lessee_set_gang(lessee, -1);
	lessee_set_space_group(lessee, 0, 0);
	pthread_mutex_lock(&a->worker.lock);
	struct lessee **link = &a->lessees;
	while (*link != lessee)
		link = &(*link)->next;
	*link = lessee->next;
	a->lessee_count--;
	arbitration_count_charge(a, lessee, arbiter_charged_ns(a->arbiter, lessee->index));
	arbiter_remove(a->arbiter, lessee->index);
	/* Another tenant may get the index. */
	if (a->had_lease == lessee->index)
		a->had_lease = -1;
	if (a->spans)
		arbitration_note_span(a, clock_now_ns());
	a->process_count -= (unsigned)lessee->observer.count;
	doorbell_wake(&a->changed);
	pthread_mutex_unlock(&a->worker.lock);
	observer_free(&lessee->observer);
	free(lessee);
	return NULL;
}

int lessee_set_share(struct lessee *lessee, struct arbiter_share share)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	int r = arbiter_set_share(a->arbiter, lessee->index, share);
	if (r >= 0) {
		lessee->elastic.cores_pct = share.cores_pct;
		lessee->elastic.limit_pct = share.limit_pct;
		lend_reset(&lessee->elastic);
	}
	doorbell_wake(&a->changed);
	pthread_mutex_unlock(&a->worker.lock);
	return r;
}

void lessee_rename(struct lessee *lessee, const char *tenant)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	snprintf(lessee->tenant, sizeof(lessee->tenant), "%s", tenant);
	pthread_mutex_unlock(&a->worker.lock);
}

void lessee_set_paused(struct lessee *lessee, bool paused)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	arbiter_set_paused(a->arbiter, lessee->index, paused);
	lessee->paused = paused;
	doorbell_wake(&a->changed);
	pthread_mutex_unlock(&a->worker.lock);
}

void lessee_set_elastic(struct lessee *lessee, bool may_borrow)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	if (lessee->elastic.may_borrow != may_borrow) {
		lessee->elastic.may_borrow = may_borrow;
		lend_reset(&lessee->elastic);
		arbiter_set_limit(a->arbiter, lessee->index, lessee->elastic.limit_now_pct);
		doorbell_wake(&a->changed);
	}
	pthread_mutex_unlock(&a->worker.lock);
}

void lessee_set_gang(struct lessee *lessee, int gang)
{
	struct arbitration *a = lessee->owner;
	static const struct gang_report nothing;
	pthread_mutex_lock(&a->worker.lock);
	if (a->gangs && lessee->gang != gang) {
		gang_set_report(gangs_lock(a->gangs), lessee->gang, a->card, &nothing);
		gangs_unlock(a->gangs);
		a->gang_count += (unsigned)((gang >= 0) - (lessee->gang >= 0));
		lessee->gang = gang;
		lessee->gang_command = (struct gang_command){ .order = GANG_NONE };
		arbiter_set_gang(a->arbiter, lessee->index, lessee->gang_command);
		arbitration_publish_depth(a, lessee);
	}
	pthread_mutex_unlock(&a->worker.lock);
}

int lessee_set_space_group(struct lessee *lessee, uint32_t group, double part_pct)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	int r = arbiter_set_space_group(a->arbiter, lessee->index, group, part_pct);
	if (r == 0) {
		a->space_count += (unsigned)((group != 0) - lessee->shares_space);
		lessee->shares_space = group != 0;
		region_set_space(lessee->control, lessee->device, group ? part_pct : 0);
		doorbell_wake(&a->changed);
	}
	pthread_mutex_unlock(&a->worker.lock);
	return r;
}

int lessee_add_process(struct lessee *lessee, unsigned slot, int pid)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	int r = observer_add(&lessee->observer, slot, pid, clock_now_ns());
	if (r == 0) {
		a->process_count++;
		doorbell_wake(&a->changed);
	}
	pthread_mutex_unlock(&a->worker.lock);
	return r;
}

void lessee_remove_process(struct lessee *lessee, unsigned slot)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	size_t before = lessee->observer.count;
	observer_remove(&lessee->observer, slot);
	a->process_count -= (unsigned)(before - lessee->observer.count);
	doorbell_wake(&a->changed);
	pthread_mutex_unlock(&a->worker.lock);
}

bool lessee_add_reading(struct lessee *lessee, const struct time_reading *reading,
			struct time_account *ret)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	bool is_over = arbiter_add_reading(a->arbiter, lessee->index, reading, ret);
	pthread_mutex_unlock(&a->worker.lock);
	return is_over;
}

uint64_t lessee_refused_ns(struct lessee *lessee)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	uint64_t left_ns = arbiter_refused_ns(a->arbiter, lessee->index);
	pthread_mutex_unlock(&a->worker.lock);
	return left_ns;
}

struct lessee_figures lessee_figures(struct lessee *lessee)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->worker.lock);
	struct lessee_figures f = { .account = arbiter_account(a->arbiter, lessee->index),
				    .pace = arbiter_pace(a->arbiter, lessee->index),
				    .mode = arbiter_mode(a->arbiter),
				    .waiting = lessee->seen.waiting,
				    .busy = lessee->seen.busy || lessee->seen.launching,
				    .stopped = lessee->seen.stopped,
				    .step_ns = arbiter_step_ns(a->arbiter, lessee->index),
				    .turns = lessee->observer.turns.given,
				    .turns_given_up = lessee->observer.turns.given_up,
				    .in_gang = lessee->gang_command.order != GANG_NONE,
				    .limit_now_pct = lessee->elastic.limit_now_pct,
				    .spare_pct = lessee->elastic.spare_pct,
				    .lend_reason = lessee->elastic.reason,
				    .lends = lessee->lends,
				    .reclaims = lessee->reclaims };
	if (lessee->gang >= 0) {
		f.gang_turns = gang_turns(gangs_lock(a->gangs), lessee->gang);
		gangs_unlock(a->gangs);
	}
	uint64_t now_ns = clock_now_ns();
	f.got_1s_pct = window_pct(&lessee->window_1s, now_ns, f.account.charged_ns);
	f.peak_150ms_pct = window_peak_pct(&lessee->window_1s, WINDOW_STEPS * 15 / 100, now_ns,
					   f.account.charged_ns);
	f.peak_600ms_pct = window_peak_pct(&lessee->window_1s, WINDOW_STEPS * 60 / 100, now_ns,
					   f.account.charged_ns);
	f.unauthorized_1s_pct = window_pct(&lessee->unauthorized_1s, now_ns,
					   f.account.unauthorized_ns);
	f.got_60s_pct = window_pct(&lessee->window_60s, now_ns, f.account.charged_ns);
	f.wanted_60s_pct = window_pct(&lessee->wanted_60s, now_ns, lessee->wanted_ns);
	f.steps = step_window_figures(&lessee->steps, &lessee->report->steps[lessee->device],
				      now_ns);
	pthread_mutex_unlock(&a->worker.lock);
	return f;
}
