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
#include "node/bell.h"
#include "node/observe.h"
#include "node/region_host.h"
#include "node/window.h"

#define STEP_MIN_NS UINT64_C(20000)  /* never spin, whatever the arbiter asks for */
#define STEP_RUNG_NS UINT64_C(50000) /* nor whatever is rung: no faster than a drain is looked at */
#define ARBITRATION_NICE (-10)
#define GANG_ROUNDS \
	4 /* steps at one time: what is decided with other cards is news to the arbiter */
#define SLIP_DEPTH_NS 1 /* in flight while gang_word.is_slip: no more than the gate's least */
#define LOOK_IDLE_NS UINT64_C(1000000)
#define LOOK_WAITING_NS UINT64_C(4000000)
#define LOOK_RUNG_NS UINT64_C(20000000)
#define LOOK_STILL_NS NSEC_PER_SEC
#define PULSE_QUIET_NS UINT64_C(90000000) /* no tenant did anything of late: heartbeats alone */
#define FRESH_NS UINT64_C(50000000)       /* how often a census is asked for ahead of its time */
#define NO_LESSEE_NS (60 * NSEC_PER_SEC)

struct lessee {
	/* What each step reads of those that only wait, in one line of the cache. */
	_Alignas(64) struct lessee *next;
	int index; /* the arbiter's */
	enum lease_state published;
	uint64_t seen_ns; /* when: */
	struct arbiter_observation seen;

	struct arbitration *owner;
	struct region_control *control;
	struct region_report *report;
	unsigned device;
	struct observer observer;
	bool paused;
	struct bell bell;
	bool is_ending; /* at the last look: busy, and its end is waited for */
	struct elastic_tenant elastic;
	struct window window_1s, window_60s;
	bool has_use; /* another sensor's word of the card's use: */
	double use;
	uint64_t use_busy_ns;        /* its own busy time when that was told last */
	uint64_t charged_counted_ns; /* what the card's sum has of it */
	uint64_t pulsed_ns;          /* what was charged at the last pulse */
	bool is_quiet;               /* its figures are down to zero: nothing to publish ... */
	uint64_t quiet_ns;           /* ... up to then */
	int gang;                    /* its number among those that may be gangs; or negative */
	struct gang_word gang_word;
};

struct arbitration {
	pthread_t thread;
	pthread_mutex_t lock;
	_Atomic uint32_t changed; /* something did, or stop: bell_wake() */
	bool stop;
	bool has_bells; /* the kernel can wait for them */
	struct bell_list listened;
	struct gangs *gangs; /* shared with the other cards; or NULL */
	unsigned card;
	unsigned gang_count; /* lessees with a number there */
	uint64_t to_wake;    /* cards */
	uint64_t depth_ns;
	struct arbiter *arbiter;
	bool is_paced; /* by ARBITER_POLICY_FEEDBACK: launches pay, grants are published */
	struct lessee *lessees;
	unsigned lessee_count, process_count;
	unsigned unnamed; /* calls in a row in which the other sensor missed one at work */
	bool has_told;    /* and it was said */
	uint64_t stepped_ns, observed_ns;
	bool is_still;     /* nothing was rung since */
	bool needs_looks;  /* somebody may have something to tell, but does not ring for it */
	uint64_t pulse_ns; /* when the next is due */
	bool is_quiet;     /* all lessees are */
	uint64_t fresh_ns; /* when told last */
	arbitration_fresh on_fresh;
	void *fresh_data;
	uint64_t charged_ns; /* of all lessees that there ever were */
	struct elastic_config elastic;
	uint64_t lent_ns; /* when limits were last decided on */
	struct window window_1s;
};

/* Whether it can be waited for until it rings: without processes, for ever. */
static bool rings(const struct lessee *l, uint64_t now_ns)
{
	const struct arbitration *a = l->owner;

	if (!l->observer.count)
		return true;
	return a->has_bells && !a->is_paced && a->lessee_count <= BELL_MOST &&
	       bell_rings(&l->bell, now_ns);
}

/*
 * While another has the lease, of the rest only this matters: who comes to want it, soon, and who wants it
 * no more, before it is given to him. With 50 tenants, looking at all of them each time was most of a step.
 */
static bool can_wait(const struct lessee *l, uint64_t now_ns)
{
	const struct arbiter_observation *seen = &l->seen;
	uint64_t passed_ns = now_ns - l->seen_ns;

	if (seen->busy || seen->launching || l->published == LEASE_CLOSING)
		return false;
	if (seen->waiting)
		return passed_ns < LOOK_WAITING_NS;
	if (!seen->rings)
		return passed_ns < LOOK_IDLE_NS;
	return passed_ns < LOOK_RUNG_NS && atomic_load(l->bell.word) == l->bell.heard;
}

/* Did it ring for what was seen? */
static void judge(struct lessee *l, const struct arbiter_observation *before, bool has_rung,
		  uint64_t now_ns)
{
	const struct arbiter_observation *seen = &l->seen;
	bool was_active = arbiter_is_active(l->owner->arbiter, l->index);
	bool is_closed = l->published == LEASE_CLOSING || l->published == LEASE_STOP;
	bool has_begun = !was_active && (seen->busy || seen->waiting);
	bool has_ended = l->is_ending && is_closed && before->busy && !seen->busy;

	bell_judge(&l->bell, now_ns, has_begun || has_ended, has_rung);
	l->is_ending = is_closed && seen->busy;
}

static void look_at(struct lessee *l, uint64_t now_ns)
{
	struct arbitration *a = l->owner;
	bool has_lease = l->index == arbiter_holder(a->arbiter) ||
			 arbiter_is_draining(a->arbiter, l->index);
	struct arbiter_observation before = l->seen;
	/* First the bell: what is rung for later is not missed. */
	bool has_rung = bell_hear(&l->bell, now_ns);

	l->seen = observer_look(&l->observer, now_ns, has_lease || a->is_paced);
	l->seen_ns = now_ns;
	judge(l, &before, has_rung, now_ns);
	l->seen.rings = rings(l, now_ns);
	l->seen.ramp_ns = atomic_load_explicit(&l->report->bell[l->device].ramp_ns,
					       memory_order_relaxed);
	if (a->is_paced)
		l->seen.spent = atomic_load(&l->report->spent[l->device].tokens);
	l->seen.has_utilization = l->has_use;
	l->seen.utilization = l->use;
	arbiter_observe(a->arbiter, l->index, &l->seen);
}

static void observe(struct arbitration *a, uint64_t now_ns)
{
	int holder = arbiter_holder(a->arbiter);
	bool has_fresh = false;
	a->observed_ns = now_ns;
	a->needs_looks = false;
	for (struct lessee *l = a->lessees; l; l = l->next) {
		if (holder < 0 || l->index == holder || !can_wait(l, now_ns)) {
			look_at(l, now_ns);
			has_fresh |= l->observer.has_fresh;
		}
		a->needs_looks |= !l->seen.rings;
	}
	a->needs_looks |= has_fresh;
	if (has_fresh && a->on_fresh && now_ns - a->fresh_ns >= FRESH_NS) {
		a->fresh_ns = now_ns;
		a->on_fresh(a->fresh_data);
	}
}

/* Whose bells to listen to: who waits, and has nothing to do, is looked at when it gets the lease. */
static void listen(struct arbitration *a)
{
	a->listened.count = 0;
	for (struct lessee *l = a->lessees; l; l = l->next)
		if (l->seen.rings &&
		    (!l->seen.waiting || l->published != LEASE_STOP || l->seen.busy) &&
		    l->observer.count)
			bell_list_add(&a->listened, &l->bell);
}

static void publish_grants(struct arbitration *a)
{
	for (struct lessee *l = a->lessees; l; l = l->next)
		region_set_grant(l->control, l->device, arbiter_granted(a->arbiter, l->index),
				 l->seen.waiting);
}

static bool lets_through(enum lease_state state)
{
	return state != LEASE_STOP && state != LEASE_CLOSING;
}

/* How long its lease may rest before it should ring: learned between its leases. */
static void publish_patience(struct lessee *l)
{
	_Atomic uint64_t *idle_ns = &l->control->device[l->device].idle_ns;
	uint64_t patience_ns = arbiter_patience_ns(l->owner->arbiter, l->index);

	if (atomic_load_explicit(idle_ns, memory_order_relaxed) != patience_ns)
		atomic_store_explicit(idle_ns, patience_ns, memory_order_relaxed);
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
	unsigned grants = 0;
	for (int pass = 0; pass <= (grants > 0); pass++)
		for (struct lessee *l = a->lessees; l; l = l->next) {
			enum lease_state state = arbiter_state(a->arbiter, l->index);
			if (pass == 0 && l->gang >= 0 && lets_through(state))
				publish_depth(a, l);
			if (state == l->published)
				continue;
			if (pass == 0 && lets_through(state)) {
				grants++;
				continue;
			}
			if (state == LEASE_GO)
				publish_patience(l);
			region_set_lease(l->control, l->device, state);
			l->published = state;
		}
}

static void count_charge(struct arbitration *a, struct lessee *l, uint64_t charged_ns)
{
	a->charged_ns += charged_ns - l->charged_counted_ns;
	l->charged_counted_ns = charged_ns;
}

/* For the utilization that NVML tells in the tenant. False: it is zero, and stays so without charge. */
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
}

/* A lessee's figures; true: there is nothing to tell of it. */
static bool pulse_lessee(struct lessee *l, uint64_t now_ns)
{
	uint64_t charged_ns = arbiter_charged_ns(l->owner->arbiter, l->index);
	bool is_charged = charged_ns != l->pulsed_ns;

	atomic_fetch_add_explicit(&l->control->heartbeat, 1, memory_order_release);
	if (l->is_quiet && !is_charged) {
		l->quiet_ns = now_ns;
		return true;
	}
	/* Windows need to know that nothing was charged up to then. */
	if (l->is_quiet)
		sample(l, l->quiet_ns, l->pulsed_ns);
	sample(l, now_ns, charged_ns);
	count_charge(l->owner, l, charged_ns);
	l->is_quiet = !publish_use(l, now_ns, charged_ns) && !is_charged;
	l->quiet_ns = now_ns;
	l->pulsed_ns = charged_ns;
	return l->is_quiet;
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
	bool is_quiet = true;
	for (struct lessee *l = a->lessees; l; l = l->next)
		is_quiet = pulse_lessee(l, now_ns) && is_quiet;
	window_add(&a->window_1s, now_ns, a->charged_ns);
	if (now_ns - a->lent_ns >= a->elastic.period_ns)
		lend(a, now_ns);
	a->pulse_ns = now_ns + (is_quiet ? PULSE_QUIET_NS : ARBITRATION_PULSE_NS);
}

/* One look, decision and publication; returns when the next is due. */
static uint64_t step(struct arbitration *a)
{
	uint64_t now_ns = clock_now_ns();
	/* Nobody works, and nobody rang. */
	bool is_still = a->is_still && !a->needs_looks && arbiter_mode(a->arbiter) == ARBITER_IDLE &&
			now_ns - a->observed_ns < LOOK_STILL_NS;
	if (!is_still)
		observe(a, now_ns);
	uint64_t next_ns = arbiter_step(a->arbiter, now_ns);
	for (int i = 1; meet_gangs(a, now_ns) && i < GANG_ROUNDS; i++)
		next_ns = arbiter_step(a->arbiter, now_ns);
	if (a->is_paced)
		publish_grants(a);
	if (!is_still) {
		publish(a);
		listen(a);
	}
	if (now_ns >= a->pulse_ns)
		pulse(a, now_ns);
	a->stepped_ns = now_ns;
	if (!a->process_count || next_ns > a->pulse_ns)
		next_ns = a->pulse_ns;
	return next_ns > now_ns + STEP_MIN_NS ? next_ns : now_ns + STEP_MIN_NS;
}

/* Until then, or until there is something new, but not at once after a step. */
static void rest(struct arbitration *a, uint32_t changed, uint64_t until_ns)
{
	a->is_still = bell_sleep(&a->listened, &a->changed, changed, until_ns);
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
	/* A late arbiter is idle GPU time; without the privilege it is as late as others. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), ARBITRATION_NICE);

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		/* What changes from here on, another card's word too, ends the rest. */
		uint32_t changed = atomic_load(&a->changed);
		/* An absolute time: lateness does not add up. */
		uint64_t until_ns = a->lessees ? step(a) : clock_now_ns() + NO_LESSEE_NS;
		uint64_t to_wake = a->to_wake;
		a->to_wake = 0;
		if (!a->lessees)
			a->listened.count = 0;
		pthread_mutex_unlock(&a->lock);
		if (to_wake)
			gangs_wake(a->gangs, to_wake);
		rest(a, changed, until_ns);
		pthread_mutex_lock(&a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static void free_parts(struct arbitration *a)
{
	arbiter_free(a->arbiter);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

int arbitration_start(struct arbitration **ret, const struct arbiter_config *config,
		      struct error *err)
{
	struct arbitration *a = calloc(1, sizeof(*a));
	if (!a)
		return error_set_errno(err, ENOMEM, "arbitration");
	pthread_mutex_init(&a->lock, NULL);
	a->has_bells = bell_is_offered();
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
	bell_wake(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	free_parts(a);
	return NULL;
}

void arbitration_set_fresh(struct arbitration *a, arbitration_fresh tell, void *data)
{
	pthread_mutex_lock(&a->lock);
	a->on_fresh = tell;
	a->fresh_data = data;
	pthread_mutex_unlock(&a->lock);
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
	bell_wake(&a->changed);
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
		/* At work by its own account: at a small share few moments are. */
		is_missing |= !l->has_use && l->observer.busy_ns != l->use_busy_ns;
		l->use_busy_ns = l->observer.busy_ns;
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
		count_charge(a, l, arbiter_charged_ns(a->arbiter, l->index));
	double pct = window_pct(&a->window_1s, clock_now_ns(), a->charged_ns);
	pthread_mutex_unlock(&a->lock);
	return pct < 100 ? pct : 100;
}

int lessee_add(struct arbitration *a, struct region_control *control, struct region_report *report,
	       unsigned device, struct arbiter_share share, struct lessee **ret, struct error *err)
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

	bell_init(&l->bell, &report->bell[device].rung);
	pthread_mutex_lock(&a->lock);
	uint64_t now_ns = clock_now_ns();
	l->index = arbiter_add(a->arbiter, now_ns, share);
	if (l->index >= 0) {
		window_init(&l->window_1s, NSEC_PER_SEC, now_ns, 0);
		window_init(&l->window_60s, 60 * NSEC_PER_SEC, now_ns, 0);
		l->next = a->lessees;
		a->lessees = l;
		a->lessee_count++;
		bell_wake(&a->changed);
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
	a->lessee_count--;
	count_charge(a, lessee, arbiter_charged_ns(a->arbiter, lessee->index));
	arbiter_remove(a->arbiter, lessee->index);
	a->process_count -= (unsigned)lessee->observer.count;
	bell_wake(&a->changed);
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
	bell_wake(&a->changed);
	pthread_mutex_unlock(&a->lock);
	return r;
}

void lessee_set_paused(struct lessee *lessee, bool paused)
{
	struct arbitration *a = lessee->owner;
	pthread_mutex_lock(&a->lock);
	arbiter_set_paused(a->arbiter, lessee->index, paused);
	lessee->paused = paused;
	bell_wake(&a->changed);
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
		bell_wake(&a->changed);
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
		bell_wake(&a->changed);
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
	bell_wake(&a->changed);
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
