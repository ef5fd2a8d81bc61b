#include "daemon/tasks/violation/time_readings.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
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
 * A tenant's charge is known for the second before the comparison. The oldest sample of a reading is 600 ms old (SAMPLES_US)
 * and shows the 200 ms before that. So a reading that is more than 200 ms old at the comparison is not used.
 */
#define READING_LATE_NS (200 * NSEC_PER_MSEC)
/* After a sample of a live process without a tenant, such a process may go on working for this long without new samples. */
#define FOREIGN_NS (60 * NSEC_PER_SEC)

struct reading_card {
	bool is_known; /* `busy` and `use` are valid */
	double busy;   /* share of the driver's last sampling period in which the card worked */
	size_t use_count;
	struct gpu_use use[READING_PROCESSES_MOST];
	bool are_processes_known;
	size_t process_count;
	struct gpu_process process[READING_PROCESSES_MOST];
	uint64_t foreign_until_ns; /* until then, a process without a tenant may work on the card */
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
	return c->busy - sum <= TIME_SLACK;
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

/* One tenant on one card. */
struct claimant {
	struct tenant *tenant;
	unsigned device;
	/* the process with the largest sample, and that sample */
	int pid;
	double largest;
};

struct reading {
	unsigned card;
	uint64_t passed_ns;
	double busy;         /* share of the time in which the card worked for tenants, 0 to 1 */
	bool is_any_foreign; /* a process without a tenant may work on the card */
	unsigned count;
	struct claimant claimant[ARBITER_MAX_TENANTS];
	struct time_claim claim[ARBITER_MAX_TENANTS]; /* of the claimant with the same index */
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
			struct arbiter_share share = tenant_share(t, d);
			reading->claim[reading->count] = (struct time_claim){
				.cores = share.cores_pct / 100,
				.limit = share.limit_pct / 100,
				.is_excused = is_excused,
				.peak_150ms = is_excused ? 1 : fmin(f.peak_150ms_pct / 100, 1),
				.peak_600ms = is_excused ? 1 : fmin(f.peak_600ms_pct / 100, 1),
				.charged = f.got_1s_pct / 100,
				.unauthorized = is_excused ? 0 : f.unauthorized_1s_pct / 100
			};
			reading->claimant[reading->count++] = (struct claimant){ .tenant = t,
										 .device = d };
		}
	return reading->count > 0;
}

/* Returns the index of the claimant whose process this is; -1 if there is none. */
static int claimant_of(const struct reading *reading, struct violations *violations, int pid)
{
	struct tenant *owner = NULL;
	for (unsigned i = 0; i < reading->count && !owner; i++)
		if (tenant_process_of(reading->claimant[i].tenant, pid))
			owner = reading->claimant[i].tenant;
	if (!owner)
		owner = violations_owner_of(violations, pid);
	if (owner && adopt_is_expected(owner, pid))
		return -1;
	for (unsigned i = 0; owner && i < reading->count; i++)
		if (reading->claimant[i].tenant == owner)
			return (int)i;
	return -1;
}

/*
 * Adds up the samples of each claimant, and subtracts those of other processes from the GPU's busy time. Returns true if one of
 * the other processes still lives. An ended process does not count: its work is over, and its tenant can't be found any more.
 */
static bool add_samples(struct reading *reading, struct violations *violations,
			const struct reading_card *c)
{
	bool is_any_foreign = false;
	for (size_t i = 0; i < c->use_count; i++) {
		const struct gpu_use *use = &c->use[i];
		int index = claimant_of(reading, violations, use->pid);
		if (index < 0) {
			is_any_foreign |= use->share > TIME_SLACK &&
					  (kill(use->pid, 0) == 0 || errno != ESRCH);
			reading->busy = fmax(reading->busy - use->share, 0);
			continue;
		}
		struct claimant *k = &reading->claimant[index];
		reading->claim[index].sampled = fmin(reading->claim[index].sampled + use->share, 1);
		if (use->share > k->largest) {
			k->largest = use->share;
			k->pid = use->pid;
		}
	}
	return is_any_foreign;
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
	double rest = time_unexplained(reading->claim, reading->count, reading->busy);
	int only = -1, pid = 0;
	if (!(rest > 0) || reading->is_any_foreign || !c->are_processes_known)
		return;
	for (size_t i = 0; i < c->process_count; i++) {
		if (has_sample_of(c, c->process[i].pid))
			continue;
		int index = claimant_of(reading, violations, c->process[i].pid);
		if (index < 0 || (only >= 0 && only != index))
			return;
		pid = only < 0 ? c->process[i].pid : 0;
		only = index;
	}
	if (only < 0)
		return;
	struct time_claim *k = &reading->claim[only];
	k->sampled = fmax(k->sampled, k->peak_600ms) + rest;
	k->certain = k->likely = k->sampled;
	reading->claimant[only].pid = pid; /* 0: several candidates */
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

/* Reports tenants in violation. Returns true if a tenant has time that is certainly unpaid. */
static bool judge(struct node *node, const struct reading *reading)
{
	bool is_any_unpaid = false;
	for (unsigned i = 0; i < reading->count; i++) {
		const struct claimant *k = &reading->claimant[i];
		const struct time_claim *claim = &reading->claim[i];
		const struct time_reading seen = { .passed_ns = reading->passed_ns,
						   .peak = claim->peak_600ms,
						   .certain = claim->certain,
						   .likely = claim->likely,
						   .charged = claim->charged,
						   .unauthorized = claim->unauthorized,
						   .share = claim->share };
		struct time_account unpaid;
		bool is_over = lessee_add_reading(k->tenant->device[k->device].lessee, &seen,
						  &unpaid);
		is_any_unpaid |= unpaid.certain_ns > 0;
		log_debug("GPU %u, tenant '%s': samples %.0f %%; its own work: "
			  "certain %.0f %%, likely %.0f %%. Charged: at most %.1f %% in any 600 ms, "
			  "%.1f %% of the last second, of which %.1f %% unauthorized. "
			  "May use %.0f %%. "
			  "Unpaid: certain %.0f ms, likely %.0f ms",
			  reading->card, k->tenant->terms.name, 100 * claim->sampled,
			  100 * claim->certain, 100 * claim->likely, 100 * claim->peak_600ms,
			  100 * claim->charged, 100 * claim->unauthorized, 100 * claim->share,
			  (double)unpaid.certain_ns / NSEC_PER_MSEC,
			  (double)unpaid.likely_ns / NSEC_PER_MSEC);
		if (!is_over)
			continue;
		int pid = k->pid ? k->pid : largest_process(k->tenant, k->device);
		if (pid)
			violations_note_time(node->violations, k->tenant, pid, reading->card,
					     claim->sampled, time_paid(&seen));
	}
	return is_any_unpaid;
}

static bool compare_card(struct time_readings *l, unsigned card, uint64_t passed_ns)
{
	struct node *node = l->node;
	struct reading_card *c = &l->card[card];
	struct reading reading = { .card = card, .passed_ns = passed_ns, .busy = c->busy };
	if (!c->is_known || !find_claimants(node, &reading))
		return false;
	if (add_samples(&reading, node->violations, c))
		c->foreign_until_ns = l->read_ns + FOREIGN_NS;
	reading.is_any_foreign = l->read_ns < c->foreign_until_ns;
	time_weigh(reading.claim, reading.count, reading.busy, reading.is_any_foreign);
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
