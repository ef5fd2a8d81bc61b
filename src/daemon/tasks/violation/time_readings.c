#include "daemon/tasks/violation/time_readings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/health/health.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/join/adopt.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/violation/violations.h"
#include "daemon/util/worker.h"
#include "policy/safety/time_policy.h"

/*
 * The time between two readings is random, from READING_LEAST_NS to three times that. Readings cost CPU time, so
 * READING_CLOSE_LEAST_NS applies only while a tenant has certainly used more time than it was charged for.
 */
#define READING_LEAST_NS NSEC_PER_SEC
#define READING_CLOSE_LEAST_NS (250 * NSEC_PER_MSEC)
#define READING_PROCESSES_MOST 256
#define SAMPLES_US UINT64_C(600000) /* age of the oldest sample of a reading */
#define IDLE_MOST 4 /* after this many readings in a row without a busy card, the thread sleeps */
/* Work that began under the previous daemon is charged to no tenant. Such work may take this long. */
#define ADOPTED_NS (60 * NSEC_PER_SEC)
/*
 * A tenant's charge is known for the second before the comparison. The samples of a reading cover the 800 ms before it. So a
 * reading that is older than this is not used.
 */
#define READING_LATE_NS (200 * NSEC_PER_MSEC)

struct reading_card {
	bool is_known; /* `busy` and `use` are valid */
	double busy;   /* share of the driver's last sampling period in which the card worked */
	size_t use_count;
	struct gpu_use use[READING_PROCESSES_MOST];
	bool are_processes_known;
	size_t process_count;
	struct gpu_process process[READING_PROCESSES_MOST];
};

struct time_readings {
	struct node *node;
	struct worker worker;
	bool is_wanted;      /* guarded by the worker's lock, like the next three */
	bool is_taken;       /* the main thread has compared the last reading */
	bool is_close;       /* a tenant has unpaid time: read more often */
	unsigned idle_count; /* readings in a row without a busy card: see IDLE_MOST */
	int ready_fd;        /* eventfd that the thread increments when a reading is complete */
	struct loop_source *source;
	uint64_t from_ns;     /* no reading before this time counts */
	uint64_t compared_ns; /* when the main thread compared the last reading; 0: none */
	/* The thread writes these, then writes ready_fd. The main thread then reads them until it sets is_taken. */
	uint64_t read_ns; /* when the reading began */
	struct reading_card card[NODE_MAX_CARDS];
};

/* Returns true if the samples account for all of the time in which the GPU worked. */
static bool are_samples_complete(const struct reading_card *c)
{
	double sum = 0;
	for (size_t i = 0; i < c->use_count; i++)
		sum += c->use[i].share;
	return !(time_unexplained(c->busy, sum) > 0);
}

static void read_card(struct node *node, unsigned index, struct reading_card *c)
{
	const struct gpu_backend *backend = node->backend;
	struct error err = { 0 };
	c->use_count = c->process_count = 0;
	c->are_processes_known = false;
	c->is_known = backend->busy && backend->use &&
		      backend->busy(node->gpu, index, &c->busy, &err) >= 0;
	/* Reading each process's use takes over a millisecond, so it is not done for an idle card. */
	if (!c->is_known || c->busy <= TIME_SLACK)
		return;
	/* NVML stamps samples with microseconds since 1970. */
	uint64_t since_us = clock_read_ns(CLOCK_REALTIME) / NSEC_PER_USEC - SAMPLES_US;
	c->is_known = backend->use(node->gpu, index, since_us, c->use, READING_PROCESSES_MOST,
				   &c->use_count, &err) >= 0;
	if (!c->is_known || are_samples_complete(c))
		return;
	c->are_processes_known = backend->processes(node->gpu, index, c->process,
						    READING_PROCESSES_MOST, &c->process_count,
						    &err) >= 0 &&
				 c->process_count <= READING_PROCESSES_MOST;
}

static uint64_t random_interval_ns(bool is_close)
{
	uint64_t least_ns = is_close ? READING_CLOSE_LEAST_NS : READING_LEAST_NS;
	uint32_t number;
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint32_t)clock_now_ns();
	return least_ns + 2 * least_ns * (uint64_t)number / UINT32_MAX;
}

static void *run(void *data)
{
	struct time_readings *l = data;
	uint64_t one = 1;
	prctl(PR_SET_NAME, "allot-time");
	pthread_mutex_lock(&l->worker.lock);
	while (!l->worker.stop) {
		if (!l->is_wanted || !l->is_taken || l->idle_count >= IDLE_MOST) {
			pthread_cond_wait(&l->worker.wake, &l->worker.lock);
			continue;
		}
		uint64_t due_ns = clock_now_ns() + random_interval_ns(l->is_close);
		struct timespec until = clock_to_timespec(due_ns);
		while (!l->worker.stop && l->is_wanted && clock_now_ns() < due_ns)
			pthread_cond_timedwait(&l->worker.wake, &l->worker.lock, &until);
		if (l->worker.stop || !l->is_wanted)
			continue;
		l->is_taken = false;
		pthread_mutex_unlock(&l->worker.lock);
		bool is_any = false;
		l->read_ns = clock_now_ns();
		for (unsigned i = 0; i < l->node->card_count; i++) {
			read_card(l->node, i, &l->card[i]);
			is_any |= l->card[i].is_known && l->card[i].busy > TIME_SLACK;
		}
		ssize_t n = is_any ? write(l->ready_fd, &one, sizeof(one)) : 0;
		(void)n; /* the counter cannot overflow: one reading at a time */
		pthread_mutex_lock(&l->worker.lock);
		l->is_taken |= !is_any;
		l->idle_count = is_any ? 0 : l->idle_count + 1;
	}
	pthread_mutex_unlock(&l->worker.lock);
	return NULL;
}

/* One tenant on one card in one reading. Shares are of the card's time. */
struct claimant {
	struct tenant *tenant;
	unsigned device;
	/* the largest shares charged in any 150 ms, and in any 600 ms, of the last second */
	double peak, peak_600ms;
	double charged, unauthorized; /* as in struct time_reading */
	double sampled;               /* sum of the samples of its processes */
	double certain, likely;       /* the parts of `sampled` that show the tenant's own work */
	/* the process with the largest sample, and that sample */
	int pid;
	double largest;
};

struct reading {
	unsigned card;
	uint64_t passed_ns;
	double busy;
	double foreign; /* share of the card's time that processes without a tenant used */
	unsigned count;
	struct claimant claimant[ARBITER_MAX_TENANTS];
};

/* Returns true while memory of the tenant is moved off a card or back: its processes then copy without being charged. */
static bool is_moving(const struct tenant *t)
{
	bool is_any = t->is_away || tenant_is_checkpointing(t);
	for (unsigned i = 0; i < t->slot_limit && !is_any; i++)
		is_any = t->process[i] && process_is_moving(t->process[i]);
	return is_any;
}

/* Fills in the card's tenants. Returns false if there are none, or if a tenant's time cannot be compared. */
static bool find_claimants(const struct node *node, struct reading *reading)
{
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned d = 0; d < t->terms.device_count; d++) {
			if (t->terms.device[d].card->index != reading->card || !t->device[d].lessee)
				continue;
			/* After a restart, processes work for the previous daemon's account until they register again. */
			if (t->space || t->adopting)
				return false;
			if (reading->count == ARBITER_MAX_TENANTS)
				return false;
			struct lessee_figures f = lessee_figures(t->device[d].lessee);
			bool is_excused = is_moving(t);
			reading->claimant[reading->count++] = (struct claimant){
				.tenant = t,
				.device = d,
				.peak = is_excused ? 1 : fmin(f.peak_150ms_pct / 100, 1),
				.peak_600ms = is_excused ? 1 : fmin(f.peak_600ms_pct / 100, 1),
				.charged = f.got_1s_pct / 100,
				.unauthorized = is_excused ? 0 : f.unauthorized_1s_pct / 100
			};
		}
	return reading->count > 0;
}

static struct claimant *claimant_of(struct reading *reading, struct violations *violations, int pid)
{
	struct tenant *owner = NULL;
	for (unsigned i = 0; i < reading->count && !owner; i++)
		if (tenant_process_of(reading->claimant[i].tenant, pid))
			owner = reading->claimant[i].tenant;
	if (!owner)
		owner = violations_owner_of(violations, pid);
	if (owner && adopt_is_expected(owner, pid))
		return NULL;
	for (unsigned i = 0; owner && i < reading->count; i++)
		if (reading->claimant[i].tenant == owner)
			return &reading->claimant[i];
	return NULL;
}

static void add_samples(struct reading *reading, struct violations *violations,
			const struct reading_card *c)
{
	for (size_t i = 0; i < c->use_count; i++) {
		const struct gpu_use *use = &c->use[i];
		struct claimant *k = claimant_of(reading, violations, use->pid);
		if (!k) {
			reading->foreign += use->share;
			continue;
		}
		k->sampled = k->sampled + use->share < 1 ? k->sampled + use->share : 1;
		if (use->share > k->largest) {
			k->largest = use->share;
			k->pid = use->pid;
		}
	}
}

/*
 * Returns the share of the card's time in which it did work that neither charges nor processes without a tenant explain. If
 * `with_samples`, the tenants' samples explain work too.
 */
static double unexplained(const struct reading *reading, bool with_samples)
{
	double sum = reading->foreign;
	for (unsigned i = 0; i < reading->count; i++) {
		const struct claimant *k = &reading->claimant[i];
		sum += with_samples && k->sampled > k->peak ? k->sampled : k->peak;
	}
	return time_unexplained(reading->busy, sum);
}

/* Returns the largest share charged in any 150 ms of the last second, for work that the tenant might begin. */
static double authorized_peak(const struct claimant *k)
{
	const struct time_reading reading = { .peak = k->peak,
					      .charged = k->charged,
					      .unauthorized = k->unauthorized };
	return time_paid(&reading);
}

/*
 * Decides what the samples show (time_policy.h). Tenant A lacks samples if its charge is more than its samples. Then either
 * A's work was counted in tenant B's samples, or A only claims to work while B pays too little. So B's `certain` is its samples
 * minus all that tenants lack. B's `likely` is its samples minus what tenants without any sample lack, because tenants with
 * samples rarely lack some for long.
 */
static void weigh_samples(struct reading *reading)
{
	double rest = unexplained(reading, false), missing = 0, unlisted = 0;
	for (unsigned i = 0; i < reading->count; i++) {
		const struct claimant *k = &reading->claimant[i];
		double lacks = k->peak_600ms > k->sampled ? k->peak_600ms - k->sampled : 0;
		missing += lacks;
		unlisted += k->sampled > TIME_SLACK ? 0 : lacks;
	}
	for (unsigned i = 0; i < reading->count; i++) {
		struct claimant *k = &reading->claimant[i];
		/*
		 * Busy time that no charge explains (rest) is not other tenants' work. So this tenant's samples up to its
		 * charge + rest show its own work.
		 */
		double uncharged = fmin(k->sampled, k->peak_600ms + rest);
		bool may_be_chance = authorized_peak(k) >= TIME_NOTHING;
		double certain = may_be_chance ? k->sampled - missing : k->sampled;
		double likely = k->sampled - unlisted;
		k->certain = certain > uncharged ? certain : uncharged;
		k->likely = likely > uncharged ? likely : uncharged;
	}
}

static bool has_sample_of(const struct reading_card *c, int pid)
{
	for (size_t i = 0; i < c->use_count; i++)
		if (c->use[i].pid == pid)
			return true;
	return false;
}

/* If all listed processes without a sample belong to one tenant, counts the time that nothing explains as this tenant's. */
static void assign_rest(struct reading *reading, struct violations *violations,
			const struct reading_card *c)
{
	double rest = unexplained(reading, true);
	struct claimant *only = NULL;
	int pid = 0;
	if (!(rest > 0) || reading->foreign > 0 || !c->are_processes_known)
		return;
	for (size_t i = 0; i < c->process_count; i++) {
		if (has_sample_of(c, c->process[i].pid))
			continue;
		struct claimant *k = claimant_of(reading, violations, c->process[i].pid);
		if (!k || (only && only != k))
			return;
		pid = only ? 0 : c->process[i].pid;
		only = k;
	}
	if (!only)
		return;
	only->sampled = fmax(only->sampled, only->peak_600ms) + rest;
	only->certain = only->likely = only->sampled;
	only->pid = pid; /* 0: several candidates */
}

/* Returns the pid of the tenant's process that holds the most memory on the card; 0: none. */
static int largest_process(const struct tenant *t, unsigned device)
{
	uint64_t most = 0;
	int pid = 0;
	for (unsigned i = 0; i < t->slot_limit; i++) {
		const struct process *p = t->process[i];
		if (p && (!pid || p->census[device].nvml_before > most)) {
			most = p->census[device].nvml_before;
			pid = p->pid;
		}
	}
	return pid;
}

/* Reports tenants that use more time than they are charged for. Returns true if a tenant has time that is certainly unpaid. */
static bool judge(struct node *node, const struct reading *reading)
{
	bool is_any_unpaid = false;
	for (unsigned i = 0; i < reading->count; i++) {
		const struct claimant *k = &reading->claimant[i];
		const struct time_reading seen = { .passed_ns = reading->passed_ns,
						   .peak = k->peak_600ms,
						   .certain = k->certain,
						   .likely = k->likely,
						   .charged = k->charged,
						   .unauthorized = k->unauthorized };
		struct time_account unpaid;
		bool is_over = lessee_add_reading(k->tenant->device[k->device].lessee, &seen,
						  &unpaid);
		is_any_unpaid |= unpaid.certain_ns > 0;
		log_debug("GPU %u, tenant '%s': samples %.0f %%; its own work: "
			  "certain %.0f %%, likely %.0f %%. Charged: at most %.1f %% in any 600 ms, "
			  "%.1f %% of the last second, of which %.1f %% unauthorized. "
			  "Unpaid: certain %.0f ms, likely %.0f ms",
			  reading->card, k->tenant->terms.name, 100 * k->sampled, 100 * k->certain,
			  100 * k->likely, 100 * k->peak_600ms, 100 * k->charged,
			  100 * k->unauthorized, (double)unpaid.certain_ns / NSEC_PER_MSEC,
			  (double)unpaid.likely_ns / NSEC_PER_MSEC);
		if (!is_over)
			continue;
		int pid = k->pid ? k->pid : largest_process(k->tenant, k->device);
		if (pid)
			violations_note_time(node->violations, k->tenant, pid, reading->card,
					     k->sampled, time_paid(&seen));
	}
	return is_any_unpaid;
}

static bool compare_card(struct time_readings *l, unsigned card, uint64_t passed_ns)
{
	struct node *node = l->node;
	const struct reading_card *c = &l->card[card];
	struct reading reading = { .card = card, .passed_ns = passed_ns, .busy = c->busy };
	if (!c->is_known || !find_claimants(node, &reading))
		return false;
	add_samples(&reading, node->violations, c);
	weigh_samples(&reading);
	assign_rest(&reading, node->violations, c);
	return judge(node, &reading);
}

static void reading_ready(void *data, uint32_t events)
{
	struct time_readings *l = data;
	uint64_t count, now_ns = clock_now_ns();
	if (read(l->ready_fd, &count, sizeof(count)) < 0)
		return;
	bool counts = now_ns - l->read_ns <= READING_LATE_NS && now_ns >= l->from_ns;
	bool is_close = false;
	for (unsigned i = 0; l->compared_ns && counts && i < l->node->card_count; i++)
		is_close |= compare_card(l, i, now_ns - l->compared_ns);
	l->compared_ns = now_ns;
	pthread_mutex_lock(&l->worker.lock);
	l->is_taken = true;
	l->is_close = is_close;
	pthread_cond_signal(&l->worker.wake);
	pthread_mutex_unlock(&l->worker.lock);
}

void time_readings_populated_changed(struct node *node)
{
	struct time_readings *l = node->time_readings;
	if (!l)
		return;
	l->compared_ns = 0;
	pthread_mutex_lock(&l->worker.lock);
	l->is_wanted = node->populated;
	l->idle_count = 0;
	pthread_cond_signal(&l->worker.wake);
	pthread_mutex_unlock(&l->worker.lock);
}

int time_readings_tenant_added(struct tenant *t, bool is_new, struct error *err)
{
	/* A container can't make itself a new tenant. */
	if (!is_new || t->terms.claim.key[0] || violations_action(t) == ON_VIOLATION_REPORT)
		return 0;
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		uint64_t left_ns = lessee_refused_ns(t->device[i].lessee);
		if (left_ns)
			return error_set(
				err, EPERM,
				"a tenant of %s used more time of GPU %u than it was charged for "
				"(violation over_time): try again in %u s",
				t->terms.uid ? "this user" : "this name",
				t->terms.device[i].card->index,
				(unsigned)(left_ns / NSEC_PER_SEC) + 1);
	}
	return 0;
}

void time_readings_tick(struct node *node)
{
	struct time_readings *l = node->time_readings;
	if (!l || !health_is_any_busy(node->health))
		return;
	pthread_mutex_lock(&l->worker.lock);
	if (l->idle_count >= IDLE_MOST)
		pthread_cond_signal(&l->worker.wake);
	l->idle_count = 0;
	pthread_mutex_unlock(&l->worker.lock);
}

static void free_parts(struct time_readings *l)
{
	loop_remove(l->source);
	close_fd(&l->ready_fd);
	free(l);
}

int time_readings_start(struct node *node, struct time_readings **ret, struct error *err)
{
	static const char what[] = "can't start the thread that reads each process's GPU time";
	struct time_readings *l = calloc(1, sizeof(*l));
	if (!l)
		return error_set_errno(err, ENOMEM, what);
	*l = (struct time_readings){ .node = node,
				     .is_taken = true,
				     .is_wanted = node->populated,
				     .from_ns = node->tenant_count ? clock_now_ns() + ADOPTED_NS : 0,
				     .ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	int r = l->ready_fd < 0
			? -errno
			: loop_add(node->loop, l->ready_fd, EPOLLIN, reading_ready, l, &l->source);
	if (r < 0)
		error_set_errno(err, -r, what);
	else
		r = worker_start(&l->worker, "GPU time", run, l, err);
	if (r < 0) {
		free_parts(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct time_readings *time_readings_stop(struct time_readings *l)
{
	if (!l)
		return NULL;
	worker_stop(&l->worker);
	free_parts(l);
	return NULL;
}
