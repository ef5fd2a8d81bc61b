#include "daemon/arbitrate/arbitration.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/arbitrate/arbitration_inside.h"
#include "daemon/arbitrate/region_host.h"

#define STEP_MIN_NS UINT64_C(20000)  /* least time between two steps of the thread */
#define STEP_RUNG_NS UINT64_C(50000) /* the same while doorbells ring all the time */
#define ARBITRATION_NICE (-10)
/* Most rounds in one step. A round may change decisions on gangs (gang_board.h), which the next round must then use. */
#define GANG_ROUNDS 4
/* Depth (ns) during a gang's slip (policy/gang/device_gang.h): so small that only a launch or two may be in flight. */
#define SLIP_DEPTH_NS 1
/* Longest times between two readings of a tenant's slots (can_wait()). POLL_STILL_NS applies while no tenant works. */
#define POLL_IDLE_NS UINT64_C(1000000)
#define POLL_WAITING_NS UINT64_C(4000000)
#define POLL_RUNG_NS UINT64_C(20000000)
#define POLL_STILL_NS NSEC_PER_SEC
/* Least time between two calls of on_memory() for new memory. */
#define NEW_MEMORY_EVERY_NS UINT64_C(50000000)
#define REQUEST_EVERY_NS UINT64_C(2000000) /* least time between reports of memory requests */
#define NO_LESSEE_NS (60 * NSEC_PER_SEC)

/* A tenant without processes cannot change, so it need not be polled either. */
static bool has_trusted_doorbell(const struct lessee *l, uint64_t now_ns)
{
	const struct arbitration *a = l->owner;

	if (!l->observer.count)
		return true;
	return a->can_wait_on_doorbells && !a->is_paced && a->lessee_count <= DOORBELL_LIST_MAX &&
	       doorbell_is_trusted(&l->doorbell, now_ns);
}

/* While another tenant has the lease, only the beginning and end of demand matter, so not every step reads the slots. */
static bool can_wait(const struct lessee *l, uint64_t now_ns)
{
	const struct arbiter_observation *seen = &l->seen;
	uint64_t passed_ns = now_ns - l->seen_ns;

	if (seen->busy || seen->launching || l->published == LEASE_CLOSING)
		return false;
	if (seen->waiting)
		return passed_ns < POLL_WAITING_NS;
	if (!seen->has_doorbell)
		return passed_ns < POLL_IDLE_NS;
	/* A gang does not ring when it begins to wait for another GPU's lease, so poll it. */
	if (l->gang_command.order != GANG_NONE && passed_ns >= POLL_WAITING_NS)
		return false;
	return passed_ns < POLL_RUNG_NS && atomic_load(l->doorbell.word) == l->doorbell.seen_value;
}

/* These changes need a ring: the tenant began to work or to wait, or its work ended after its lease was revoked. */
static void check_doorbell(struct lessee *l, const struct arbiter_observation *before,
			   bool has_rung, uint64_t now_ns)
{
	const struct arbiter_observation *seen = &l->seen;
	bool was_active = arbiter_is_active(l->owner->arbiter, l->index);
	bool is_closed = l->published == LEASE_CLOSING || l->published == LEASE_STOP;
	bool has_begun = !was_active && (seen->busy || seen->waiting);
	bool has_ended = l->is_ending && is_closed && before->busy && !seen->busy;

	doorbell_check(&l->doorbell, now_ns, has_begun || has_ended, has_rung);
	l->is_ending = is_closed && seen->busy;
}

static void observe_lessee(struct lessee *l, uint64_t now_ns)
{
	struct arbitration *a = l->owner;
	bool has_lease = arbiter_has_lease(a->arbiter, l->index) ||
			 arbiter_is_draining(a->arbiter, l->index) ||
			 arbiter_mode(a->arbiter) == ARBITER_SLICED;
	struct arbiter_observation before = l->seen;
	/* Read the doorbell before the slots, so that a ring for a later change is not missed. */
	bool has_rung = doorbell_poll(&l->doorbell, now_ns);

	l->observer.in_gang = l->gang_command.order != GANG_NONE;
	l->seen = observer_read(&l->observer, now_ns, has_lease || a->is_paced);
	l->seen_ns = now_ns;
	check_doorbell(l, &before, has_rung, now_ns);
	l->seen.has_doorbell = has_trusted_doorbell(l, now_ns);
	l->seen.ramp_ns = atomic_load_explicit(&l->report->bell[l->device].ramp_ns,
					       memory_order_relaxed);
	l->seen.behind_ns = atomic_load_explicit(&l->report->bell[l->device].behind_ns,
						 memory_order_relaxed);
	l->seen.sync_points = atomic_load_explicit(&l->report->bell[l->device].sync_points,
						   memory_order_relaxed);
	l->seen.gap_ns = atomic_load_explicit(&l->report->bell[l->device].gap_ns,
					      memory_order_relaxed);
	l->seen.waits = atomic_load_explicit(&l->report->steps[l->device].count,
					     memory_order_relaxed);
	if (a->is_paced || l->shares_space) {
		const struct region_spent *spent = &l->report->spent[l->device];
		/* The library pays before it counts the work. So read the work first; the payments read next include it. */
		l->seen.work_ns = atomic_load(&spent->work_ns);
		l->seen.untried_ns = atomic_load(&spent->untried_ns);
		l->seen.spent = atomic_load(&spent->tokens);
	}
	l->seen.has_utilization = l->has_use;
	l->seen.utilization = l->use;
	arbiter_observe(a->arbiter, l->index, &l->seen);
}

static void observe(struct arbitration *a, uint64_t now_ns)
{
	int holder = arbiter_holder(a->arbiter);
	bool has_new_memory = false;
	a->observed_ns = now_ns;
	a->needs_polling = false;
	for (struct lessee *l = a->lessees; l; l = l->next) {
		if (holder < 0 || arbiter_has_lease(a->arbiter, l->index) || !can_wait(l, now_ns)) {
			observe_lessee(l, now_ns);
			has_new_memory |= l->observer.has_new_memory;
			a->has_memory_request |= l->observer.has_memory_request;
		}
		a->needs_polling |= !l->seen.has_doorbell;
	}
	bool reports_request = a->has_memory_request &&
			       now_ns - a->request_reported_ns >= REQUEST_EVERY_NS;
	a->needs_polling |= has_new_memory || (a->has_memory_request && !reports_request);
	if (a->on_memory &&
	    (reports_request ||
	     (has_new_memory && now_ns - a->new_memory_reported_ns >= NEW_MEMORY_EVERY_NS))) {
		if (has_new_memory)
			a->new_memory_reported_ns = now_ns;
		if (reports_request) {
			a->has_memory_request = false;
			a->request_reported_ns = now_ns;
		}
		a->on_memory(a->on_memory_data);
	}
}

/* Omits a tenant that waits for the lease and has no work in flight: its slots are read when it gets the lease. */
static void collect_doorbells(struct arbitration *a)
{
	a->doorbells.count = 0;
	for (struct lessee *l = a->lessees; l; l = l->next)
		if (l->seen.has_doorbell &&
		    (!l->seen.waiting || l->published != LEASE_STOP || l->seen.busy) &&
		    l->observer.count)
			doorbell_list_add(&a->doorbells, &l->doorbell);
}

static void publish_grants(struct arbitration *a)
{
	for (struct lessee *l = a->lessees; l; l = l->next) {
		if (!a->is_paced && !l->shares_space)
			continue;
		region_set_grant(l->control, l->device, arbiter_granted(a->arbiter, l->index),
				 l->seen.waiting);
	}
}

static bool permits_launch(enum lease_state state)
{
	return state != LEASE_STOP && state != LEASE_CLOSING;
}

/* Reports this GPU's tenants to the board of gangs, and reads the board's decisions. Returns true if a decision changed. */
static bool exchange_with_gangs(struct arbitration *a, uint64_t now_ns)
{
	bool is_news = false;
	if (!a->gang_count)
		return false;
	struct gang_board *board = gangs_lock(a->gangs);
	for (struct lessee *l = a->lessees; l; l = l->next) {
		struct gang_report report = arbiter_gang_report(a->arbiter, l->index);
		gang_set_report(board, l->gang, a->card, &report);
	}
	a->to_wake |= gang_decide(board, now_ns) & ~(UINT64_C(1) << a->card);
	for (struct lessee *l = a->lessees; l; l = l->next)
		if (l->gang >= 0) {
			l->gang_command = gang_command(board, l->gang, a->card);
			is_news |= arbiter_set_gang(a->arbiter, l->index, l->gang_command);
		}
	gangs_unlock(a->gangs);
	return is_news;
}

void arbitration_publish_depth(const struct arbitration *a, struct lessee *l)
{
	struct region_control_device *c = &l->control->device[l->device];
	uint64_t free_depth_ns = atomic_load_explicit(&c->free_depth_ns, memory_order_relaxed);
	atomic_store_explicit(&c->depth_ns,
			      l->gang_command.is_slip
				      ? SLIP_DEPTH_NS
				      : arbiter_depth_ns(a->arbiter, l->index, free_depth_ns),
			      memory_order_relaxed);
}

static void publish_sync_point(const struct arbitration *a, struct lessee *l)
{
	enum region_sync_point wanted = arbiter_wants_sync_point(a->arbiter, l->index);
	if (wanted == l->wants_sync_point)
		return;
	l->wants_sync_point = wanted;
	atomic_store_explicit(&l->control->device[l->device].sync_point_wanted, wanted,
			      memory_order_relaxed);
}

/* Revokes leases in the first pass and grants new ones in the second. */
static void publish(struct arbitration *a)
{
	unsigned grants = 0;
	for (int pass = 0; pass <= (grants > 0); pass++)
		for (struct lessee *l = a->lessees; l; l = l->next) {
			enum lease_state state = arbiter_state(a->arbiter, l->index);
			if (pass == 0)
				publish_sync_point(a, l);
			if (pass == 0 && (l->gang >= 0 || l->shares_space) && permits_launch(state))
				arbitration_publish_depth(a, l);
			if (state == l->published)
				continue;
			if (pass == 0 && permits_launch(state)) {
				grants++;
				continue;
			}
			if (state == LEASE_GO)
				arbitration_publish_patience(l);
			if (state == LEASE_GO || state == LEASE_PACED)
				arbitration_publish_depth(a, l);
			region_set_lease(l->control, l->device, state);
			l->published = state;
		}
}

/*
 * After an intended sleep, steps the arbiter once for each max_step_ns, so that the sleep counts in full. One step alone would
 * count only max_step_ns of it: this keeps time in which the daemon was stopped from counting.
 */
static void count_sleep(struct arbitration *a, uint64_t now_ns)
{
	uint64_t step_ns = a->config.max_step_ns;
	uint64_t end_ns = a->stepped_ns + ARBITRATION_SLEEP_NS;
	if (!a->is_sleeping || !step_ns)
		return;
	end_ns = end_ns < now_ns ? end_ns : now_ns;
	for (uint64_t at_ns = a->stepped_ns + step_ns; at_ns < end_ns; at_ns += step_ns)
		arbiter_step(a->arbiter, at_ns);
}

static uint64_t step(struct arbitration *a)
{
	uint64_t now_ns = clock_now_ns();
	count_sleep(a, now_ns);
	/* If is_still, nothing can have changed: no tenant has work and no doorbell has rung. */
	bool is_still = a->is_still && !a->needs_polling &&
			arbiter_mode(a->arbiter) == ARBITER_IDLE &&
			now_ns - a->observed_ns < POLL_STILL_NS;
	if (!is_still)
		observe(a, now_ns);
	uint64_t next_ns = arbiter_step(a->arbiter, now_ns);
	for (int i = 1; exchange_with_gangs(a, now_ns) && i < GANG_ROUNDS; i++)
		next_ns = arbiter_step(a->arbiter, now_ns);
	if (a->is_paced || a->space_count)
		publish_grants(a);
	if (!is_still) {
		uint64_t turns_ns = arbitration_publish_turns(a, now_ns);
		next_ns = turns_ns < next_ns ? turns_ns : next_ns;
		publish(a);
		collect_doorbells(a);
	}
	if (a->spans)
		arbitration_note_span(a, now_ns);
	if (now_ns >= a->next_tick_ns || (a->is_sleeping && !arbitration_may_sleep(a)))
		arbitration_tick(a, now_ns);
	a->stepped_ns = now_ns;
	if (!a->process_count || a->is_sleeping || next_ns > a->next_tick_ns)
		next_ns = a->next_tick_ns;
	return next_ns > now_ns + STEP_MIN_NS ? next_ns : now_ns + STEP_MIN_NS;
}

/* The sleep ends early if a doorbell rings or a->changed differs from `changed`, but not before STEP_RUNG_NS. */
static void sleep_until(struct arbitration *a, uint32_t changed, uint64_t until_ns)
{
	a->is_still = doorbell_wait(&a->doorbells, &a->changed, changed, until_ns);
	uint64_t earliest_ns = a->stepped_ns + STEP_RUNG_NS;
	if (earliest_ns < until_ns && clock_now_ns() < earliest_ns) {
		struct timespec ts = clock_to_timespec(earliest_ns);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
}

static void *run(void *data)
{
	struct arbitration *a = data;
	prctl(PR_SET_NAME, "allot-arbiter");
	prctl(PR_SET_TIMERSLACK, 1);
	/* A late decision wastes GPU time. Without the privilege the priority stays normal. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), ARBITRATION_NICE);

	pthread_mutex_lock(&a->worker.lock);
	while (!a->worker.stop) {
		/* Read `changed` before the step, so that a change during the step ends the sleep. */
		uint32_t changed = atomic_load(&a->changed);
		/* An absolute deadline, so that late wake-ups do not accumulate. */
		uint64_t until_ns = a->lessees ? step(a) : clock_now_ns() + NO_LESSEE_NS;
		uint64_t to_wake = a->to_wake;
		a->to_wake = 0;
		if (!a->lessees)
			a->doorbells.count = 0;
		pthread_mutex_unlock(&a->worker.lock);
		if (to_wake)
			gangs_wake(a->gangs, to_wake);
		sleep_until(a, changed, until_ns);
		pthread_mutex_lock(&a->worker.lock);
	}
	pthread_mutex_unlock(&a->worker.lock);
	return NULL;
}

int arbitration_start(struct arbitration **ret, const struct arbiter_config *config,
		      struct error *err)
{
	struct arbitration *a = calloc(1, sizeof(*a));
	if (!a)
		return error_set_errno(err, ENOMEM, "arbitration");
	a->can_wait_on_doorbells = doorbell_is_supported();
	a->elastic = lend_default_config();
	window_init(&a->window_1s, NSEC_PER_SEC, clock_now_ns(), 0);
	a->config = *config;
	a->is_paced = config->policy == ARBITER_POLICY_FEEDBACK;
	a->arbiter = arbiter_new(config);
	int r = a->arbiter ? worker_start(&a->worker, "arbitration", run, a, err)
			   : error_set_errno(err, ENOMEM, "arbitration");
	if (r < 0) {
		arbiter_free(a->arbiter);
		free(a);
		return r;
	}
	*ret = a;
	return 0;
}

struct arbitration *arbitration_stop(struct arbitration *a)
{
	if (!a)
		return NULL;
	if (a->gangs)
		gangs_set_card(a->gangs, a->card, NULL);
	worker_request_stop(&a->worker);
	doorbell_wake(&a->changed);
	worker_join(&a->worker);
	arbiter_free(a->arbiter);
	free(a->spans);
	free(a);
	return NULL;
}

void arbitration_set_on_memory(struct arbitration *a, arbitration_on_memory on_memory, void *data)
{
	pthread_mutex_lock(&a->worker.lock);
	a->on_memory = on_memory;
	a->on_memory_data = data;
	pthread_mutex_unlock(&a->worker.lock);
}

void arbitration_set_gangs(struct arbitration *a, struct gangs *gangs, unsigned card)
{
	pthread_mutex_lock(&a->worker.lock);
	a->gangs = gangs;
	a->card = card;
	pthread_mutex_unlock(&a->worker.lock);
	if (gangs)
		gangs_set_card(gangs, card, &a->changed);
}

void arbitration_set_turns(struct arbitration *a, bool has_turns)
{
	pthread_mutex_lock(&a->worker.lock);
	a->has_turns = has_turns;
	pthread_mutex_unlock(&a->worker.lock);
}

void arbitration_set_elastic(struct arbitration *a, const struct lend_config *config)
{
	pthread_mutex_lock(&a->worker.lock);
	a->elastic = *config;
	pthread_mutex_unlock(&a->worker.lock);
}
