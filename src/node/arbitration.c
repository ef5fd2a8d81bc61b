#include "node/arbitration.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/observe.h"
#include "node/region_host.h"
#include "node/window.h"

#define STEP_MIN_NS UINT64_C(20000) /* never spin, whatever the arbiter asks for */
#define ARBITRATION_NICE (-10)
#define GANG_ROUNDS \
	4 /* steps at one time: what is decided with other cards is news to the arbiter */
#define SLIP_DEPTH_NS 1 /* in flight while gang_word.is_slip: no more than the gate's least */
#define LOOK_IDLE_NS UINT64_C(1000000)
#define LOOK_WAITING_NS UINT64_C(4000000)

struct lessee {
	struct arbitration *owner;
	struct lessee *next;
	int index; /* the arbiter's */
	struct region_control *control;
	struct region_report *report;
	unsigned device;
	struct observer observer;
	struct arbiter_observation seen;
	uint64_t seen_ns; /* when */
	bool paused;
	struct elastic_tenant elastic;
	struct window window_1s, window_60s;
	bool has_use; /* another sensor's word of the card's use: */
	double use;
	uint64_t charged_counted_ns; /* what the card's sum has of it */
	int gang;                    /* its number among those that may be gangs; or negative */
	struct gang_word gang_word;
};

struct arbitration {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* something changed, or stop */
	bool stop;
	bool is_woken;       /* by another card's step */
	struct gangs *gangs; /* shared with the other cards; or NULL */
	unsigned card;
	unsigned gang_count; /* lessees with a number there */
	uint64_t to_wake;    /* cards */
	uint64_t depth_ns;
	struct arbiter *arbiter;
	bool is_paced; /* by ARBITER_POLICY_FEEDBACK: launches pay, grants are published */
	struct lessee *lessees;
	unsigned process_count;
	unsigned unnamed;    /* calls in a row in which the other sensor missed one at work */
	bool has_told;       /* and it was said */
	uint64_t pulse_ns;   /* when the next is due */
	uint64_t charged_ns; /* of all lessees that there ever were */
	struct elastic_config elastic;
	uint64_t lent_ns; /* when limits were last decided on */
	struct window window_1s;
};

/*
 * While another has the lease, of the rest only this matters: who comes to want it, soon, and who wants it
 * no more, before it is given to him. With 50 tenants, looking at all of them each time was most of a step.
 */
static bool can_wait(const struct lessee *l, uint64_t now_ns)
{
	const struct arbiter_observation *seen = &l->seen;

	if (seen->busy || seen->launching)
		return false;
	return now_ns - l->seen_ns < (seen->waiting ? LOOK_WAITING_NS : LOOK_IDLE_NS);
}

static void observe(struct arbitration *a, uint64_t now_ns)
{
	int holder = arbiter_holder(a->arbiter);
	for (struct lessee *l = a->lessees; l; l = l->next) {
		bool has_lease = l->index == holder ||
				 arbiter_account(a->arbiter, l->index).draining;
		if (holder >= 0 && !has_lease && can_wait(l, now_ns))
			continue;
		l->seen = observer_look(&l->observer, now_ns, has_lease || a->is_paced);
		l->seen_ns = now_ns;
		if (a->is_paced)
			l->seen.spent = atomic_load(&l->report->spent[l->device].tokens);
		l->seen.has_utilization = l->has_use;
		l->seen.utilization = l->use;
		arbiter_observe(a->arbiter, l->index, &l->seen);
	}
}

static void publish_grants(struct arbitration *a)
{
	for (struct lessee *l = a->lessees; l; l = l->next)
		region_set_grant(l->control, l->device, arbiter_granted(a->arbiter, l->index),
				 l->seen.waiting);
}

/* Tells the other cards of those who work there too, and hears of them: true when there is news. */
static bool meet_gangs(struct arbitration *a, uint64_t now_ns)
{
	bool is_news = false;
	if (!a->gang_count)
		return false;
	struct gang_board *board = gangs_lock(a->gangs);
	for (struct lessee *l = a->lessees; l; l = l->next) {
		struct gang_report report = arbiter_gang_report(a->arbiter, l->index);
		gang_tell(board, l->gang, a->card, &report);
	}
	a->to_wake |= gang_decide(board, now_ns) & ~(UINT64_C(1) << a->card);
	for (struct lessee *l = a->lessees; l; l = l->next)
		if (l->gang >= 0) {
			l->gang_word = gang_word(board, l->gang, a->card);
			is_news |= arbiter_set_gang(a->arbiter, l->index, l->gang_word);
		}
	gangs_unlock(a->gangs);
	return is_news;
}

static void publish_depth(const struct arbitration *a, struct lessee *l)
{
	atomic_store_explicit(&l->control->device[l->device].depth_ns,
			      l->gang_word.is_slip ? SLIP_DEPTH_NS : a->depth_ns,
			      memory_order_relaxed);
}

/* Whoever loses the lease hears of it before anyone gets it. */
static void publish(struct arbitration *a)
{
	for (int grants = 0; grants <= 1; grants++)
		for (struct lessee *l = a->lessees; l; l = l->next) {
			enum lease_state state = arbiter_state(a->arbiter, l->index);
			bool is_grant = state != LEASE_STOP && state != LEASE_CLOSING;
			if (is_grant && l->gang >= 0)
				publish_depth(a, l);
			if (is_grant == (bool)grants)
				region_set_lease(l->control, l->device, state);
		}
}

static void count_charge(struct arbitration *a, struct lessee *l, uint64_t charged_ns)
{
	a->charged_ns += charged_ns - l->charged_counted_ns;
	l->charged_counted_ns = charged_ns;
}

/* For the utilization that NVML tells in the tenant. */
static void publish_use(struct lessee *l, uint64_t now_ns, uint64_t charged_ns)
{
	double pct = window_pct(&l->window_1s, now_ns, charged_ns);
	atomic_store_explicit(&l->control->device[l->device].got_1s_pct_x100,
			      (uint32_t)(pct < 100 ? pct * 100 : 10000), memory_order_relaxed);
	observer_publish_recent(&l->observer, l->report);
}

/* Decides anew what each that may borrow is lent. */
static void lend(struct arbitration *a, uint64_t now_ns)
{
	struct elastic_tenant *tenants[ARBITER_MAX_TENANTS];
	size_t count = 0;
	for (struct lessee *l = a->lessees; l; l = l->next) {
		struct arbiter_account account = arbiter_account(a->arbiter, l->index);
		l->elastic.charged_ns = account.charged_ns;
		l->elastic.waited_ns = account.waited_ns;
		l->elastic.absent = l->paused || l->seen.stopped;
		tenants[count++] = &l->elastic;
	}
	elastic_decide(&a->elastic, tenants, count, now_ns - a->lent_ns);
	for (struct lessee *l = a->lessees; l; l = l->next)
		arbiter_set_limit(a->arbiter, l->index, l->elastic.limit_now_pct);
	a->lent_ns = now_ns;
}

static void pulse(struct arbitration *a, uint64_t now_ns)
{
	for (struct lessee *l = a->lessees; l; l = l->next) {
		uint64_t charged_ns = arbiter_account(a->arbiter, l->index).charged_ns;
		window_add(&l->window_1s, now_ns, charged_ns);
		window_add(&l->window_60s, now_ns, charged_ns);
		count_charge(a, l, charged_ns);
		publish_use(l, now_ns, charged_ns);
		atomic_fetch_add_explicit(&l->control->heartbeat, 1, memory_order_release);
	}
	window_add(&a->window_1s, now_ns, a->charged_ns);
	if (now_ns - a->lent_ns >= a->elastic.period_ns)
		lend(a, now_ns);
	a->pulse_ns = now_ns + ARBITRATION_PULSE_NS;
}

/* One look, decision and publication; returns when the next is due. */
static uint64_t step(struct arbitration *a)
{
	uint64_t now_ns = clock_now_ns();
	observe(a, now_ns);
	uint64_t next_ns = arbiter_step(a->arbiter, now_ns);
	for (int i = 1; meet_gangs(a, now_ns) && i < GANG_ROUNDS; i++)
		next_ns = arbiter_step(a->arbiter, now_ns);
	if (a->is_paced)
		publish_grants(a);
	publish(a);
	if (now_ns >= a->pulse_ns)
		pulse(a, now_ns);
	if (!a->process_count || next_ns > a->pulse_ns)
		next_ns = a->pulse_ns;
	return next_ns > now_ns + STEP_MIN_NS ? next_ns : now_ns + STEP_MIN_NS;
}

/* Without the own lock, which the others' threads take to wake this one. */
static void wake_others(struct arbitration *a)
{
	uint64_t cards = a->to_wake;
	a->to_wake = 0;
	pthread_mutex_unlock(&a->lock);
	gangs_wake(a->gangs, cards);
	pthread_mutex_lock(&a->lock);
}

static void *run(void *data)
{
	struct arbitration *a = data;
	prctl(PR_SET_NAME, "allot-arbiter");
	prctl(PR_SET_TIMERSLACK, 1);
	/* A late arbiter is idle GPU time; without the privilege it is as late as others. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), ARBITRATION_NICE);

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		if (!a->lessees) {
			pthread_cond_wait(&a->wake, &a->lock);
			continue;
		}
		/* An absolute time of CLOCK_MONOTONIC (the condition's clock): lateness does not add up. */
		a->is_woken = false;
		struct timespec until = clock_to_timespec(step(a));
		if (a->to_wake)
			wake_others(a);
		if (a->is_woken || a->stop)
			continue;
		pthread_cond_timedwait(&a->wake, &a->lock, &until);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static void init_locks(struct arbitration *a)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&a->lock, NULL);
}

static void free_parts(struct arbitration *a)
{
	arbiter_free(a->arbiter);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

int arbitration_start(struct arbitration **ret, const struct arbiter_config *config,
		      struct error *err)
{
	struct arbitration *a = calloc(1, sizeof(*a));
	if (!a)
		return error_set_errno(err, ENOMEM, "arbitration");
	init_locks(a);
	a->elastic = elastic_default_config();
	window_init(&a->window_1s, NSEC_PER_SEC, clock_now_ns(), 0);
	a->depth_ns = config->depth_ns;
	a->is_paced = config->policy == ARBITER_POLICY_FEEDBACK;
	a->arbiter = arbiter_new(config);
	int e = a->arbiter ? pthread_create(&a->thread, NULL, run, a) : ENOMEM;
	if (e) {
		free_parts(a);
		return error_set_errno(err, e, "arbitration thread");
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
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	free_parts(a);
	return NULL;
}

void arbitration_set_gangs(struct arbitration *a, struct gangs *gangs, unsigned card)
{
	pthread_mutex_lock(&a->lock);
	a->gangs = gangs;
	a->card = card;
	pthread_mutex_unlock(&a->lock);
	if (gangs)
		gangs_set_card(gangs, card, a);
}

void arbitration_wake(struct arbitration *a)
{
	pthread_mutex_lock(&a->lock);
	a->is_woken = true;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
}

void arbitration_set_elastic(struct arbitration *a, const struct elastic_config *config)
{
	pthread_mutex_lock(&a->lock);
	a->elastic = *config;
	pthread_mutex_unlock(&a->lock);
}

/* Sums up the lessee's processes; false: none of them is named. */
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

void arbitration_set_use(struct arbitration *a, const struct gpu_use *list, size_t count)
{
	bool is_missing = false;
	pthread_mutex_lock(&a->lock);
	for (struct lessee *l = a->lessees; l; l = l->next) {
		l->has_use = find_use(l, list, count, &l->use);
		is_missing |= !l->has_use && l->seen.busy;
	}
	/* It is late with who just began. */
	a->unnamed = is_missing ? a->unnamed + 1 : 0;
	bool tells = a->unnamed >= ARBITRATION_UNNAMED && !a->has_told;
	a->has_told |= tells;
	pthread_mutex_unlock(&a->lock);
	if (tells)
		log_warning("feedback_sensor nvml: it does not name a process that is at work: "
			    "measured "
			    "by allot's busy time instead");
}

double arbitration_busy_pct(struct arbitration *a)
{
	pthread_mutex_lock(&a->lock);
	for (struct lessee *l = a->lessees; l; l = l->next)
		count_charge(a, l, arbiter_account(a->arbiter, l->index).charged_ns);
	double pct = window_pct(&a->window_1s, clock_now_ns(), a->charged_ns);
	pthread_mutex_unlock(&a->lock);
	return pct < 100 ? pct : 100;
}

int lessee_add(struct arbitration *a, struct region_control *control, struct region_report *report,
	       unsigned device, struct arbiter_share share, struct lessee **ret, struct error *err)
{
	struct lessee *l = calloc(1, sizeof(*l));
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

	pthread_mutex_lock(&a->lock);
	uint64_t now_ns = clock_now_ns();
	l->index = arbiter_add(a->arbiter, now_ns, share);
	if (l->index >= 0) {
		window_init(&l->window_1s, NSEC_PER_SEC, now_ns, 0);
		window_init(&l->window_60s, 60 * NSEC_PER_SEC, now_ns, 0);
		l->next = a->lessees;
		a->lessees = l;
		pthread_cond_signal(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);

	if (l->index < 0) {
		int e = -l->index;
		free(l);
		return e == ENOSPC
			       ? error_set(err, e,
					   "the card has %d tenants already, the most it may have",
					   ARBITER_MAX_TENANTS)
			       : error_set_errno(err, e, "share");
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
	pthread_mutex_lock(&a->lock);
	struct lessee **link = &a->lessees;
	while (*link != lessee)
		link = &(*link)->next;
	*link = lessee->next;
	count_charge(a, lessee, arbiter_account(a->arbiter, lessee->index).charged_ns);
	arbiter_remove(a->arbiter, lessee->index);
	a->process_count -= (unsigned)lessee->observer.count;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	observer_free(&lessee->observer);
	free(lessee);
	return NULL;
}

int lessee_set_share(struct lessee *lessee, struct arbiter_share share)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->lock);
	int r = arbiter_set_share(a->arbiter, lessee->index, share);
	if (r >= 0) {
		lessee->elastic.cores_pct = share.cores_pct;
		lessee->elastic.limit_pct = share.limit_pct;
		elastic_reset(&lessee->elastic);
	}
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	return r;
}

void lessee_set_paused(struct lessee *lessee, bool paused)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->lock);
	arbiter_set_paused(a->arbiter, lessee->index, paused);
	lessee->paused = paused;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
}

void lessee_set_elastic(struct lessee *lessee, bool may_borrow)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->lock);
	if (lessee->elastic.may_borrow != may_borrow) {
		lessee->elastic.may_borrow = may_borrow;
		elastic_reset(&lessee->elastic);
		arbiter_set_limit(a->arbiter, lessee->index, lessee->elastic.limit_now_pct);
		pthread_cond_signal(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);
}

void lessee_set_gang(struct lessee *lessee, int gang)
{
	struct arbitration *a = lessee->owner;
	static const struct gang_report nothing;
	pthread_mutex_lock(&a->lock);
	if (a->gangs && lessee->gang != gang) {
		gang_tell(gangs_lock(a->gangs), lessee->gang, a->card, &nothing);
		gangs_unlock(a->gangs);
		a->gang_count += (unsigned)((gang >= 0) - (lessee->gang >= 0));
		lessee->gang = gang;
		lessee->gang_word = (struct gang_word){ .order = GANG_NONE };
		arbiter_set_gang(a->arbiter, lessee->index, lessee->gang_word);
		publish_depth(a, lessee);
	}
	pthread_mutex_unlock(&a->lock);
}

int lessee_add_process(struct lessee *lessee, unsigned slot, int pid)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->lock);
	int r = observer_add(&lessee->observer, slot, pid, clock_now_ns());
	if (r == 0) {
		a->process_count++;
		pthread_cond_signal(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}

void lessee_remove_process(struct lessee *lessee, unsigned slot)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->lock);
	size_t before = lessee->observer.count;
	observer_remove(&lessee->observer, slot);
	a->process_count -= (unsigned)(before - lessee->observer.count);
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
}

struct lessee_figures lessee_figures(struct lessee *lessee)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->lock);
	struct lessee_figures f = { .account = arbiter_account(a->arbiter, lessee->index),
				    .mode = arbiter_mode(a->arbiter),
				    .waiting = lessee->seen.waiting,
				    .busy = lessee->seen.busy || lessee->seen.launching,
				    .stopped = lessee->seen.stopped,
				    .in_gang = lessee->gang_word.order != GANG_NONE,
				    .limit_now_pct = lessee->elastic.limit_now_pct,
				    .spare_pct = lessee->elastic.spare_pct,
				    .elastic_reason = lessee->elastic.reason };
	if (lessee->gang >= 0) {
		f.gang_turns = gang_turns(gangs_lock(a->gangs), lessee->gang);
		gangs_unlock(a->gangs);
	}
	uint64_t now_ns = clock_now_ns();
	f.got_1s_pct = window_pct(&lessee->window_1s, now_ns, f.account.charged_ns);
	f.got_60s_pct = window_pct(&lessee->window_60s, now_ns, f.account.charged_ns);
	pthread_mutex_unlock(&a->lock);
	return f;
}
