#include "gpu_model.h"

#include <stdio.h>
#include <stdlib.h>

#define QUEUE 4096 /* kernels in flight, a power of two */
#define NEVER UINT64_MAX
#define LATENCIES 4096

#define DEPTH_NS (2 * MS)
#define FREE_DEPTH_NS (20 * MS)
#define LAUNCH_NS 2500
#define DEFAULT_COST (132 * 256) /* tokens of a launch, under LEASE_PACED */
#define SLICE_NS (2090 * US)
#define SLICE_GAP_NS (310 * US)
#define REST_NS (20 * MS) /* work or demand after less than this is not rung for */

enum thread_state {
	THREAD_OFF,
	THREAD_THINKS,
	THREAD_AT_GATE,  /* looks at the word at thread_at */
	THREAD_LAUNCHES, /* its launch returns at thread_at */
	THREAD_HELD,     /* by the word */
	THREAD_WAKES,    /* GO was seen, runs again at thread_at */
	THREAD_FULL,     /* by its own work in flight */
	THREAD_JOINS,    /* waits for the end of its burst */
};

struct model_tenant {
	bool used, stopped;
	struct gpu_model_load load;
	struct arbiter_share share;
	enum lease_state word;
	enum thread_state thread;
	uint64_t thread_at;
	uint64_t burst_left_ns;
	uint64_t held_since_ns, longest_wait_ns;

	uint64_t queue[QUEUE]; /* lengths; the head's is what is left of it */
	uint64_t head_full_ns; /* the head's whole length */
	unsigned head, tail;
	uint64_t inflight_ns; /* predicted */
	uint64_t next_kernel_ns;

	bool busy;
	uint64_t busy_since_ns, busy_done_ns, busy_shown_ns;
	uint64_t flag_falls_at;
	uint64_t worked_at; /* up to the last time that its flag fell */
	uint64_t tell_idle_at, idle_told_ns;

	uint64_t spent; /* tokens, under LEASE_PACED */
	uint64_t launches, kernels, bursts, work_ns, closings;
	uint64_t arrival_ns; /* of the present burst */
	uint64_t latency_ns[LATENCIES];
	unsigned latency_count;
};

struct gpu_model {
	struct gpu_model_config config;
	struct arbiter *arbiter;
	uint64_t random;
	uint64_t now;
	uint64_t poll_at;
	struct model_tenant *tenant[ARBITER_MAX_TENANTS];
	int count; /* highest index in use + 1 */

	int context;        /* on the GPU; -1 at first */
	uint64_t gap_until; /* the GPU is switching */
	uint64_t slice_ends;

	uint64_t steps, violations;
	uint64_t lost_since;
};

uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high)
{
	return high <= low ? low : low + random_next(state) % (high - low + 1);
}

struct gpu_model_config gpu_model_default_config(void)
{
	return (struct gpu_model_config){
		.arbiter = arbiter_default_config(),
		.seed = 1,
		.switch_ns = 200 * US,
		.poll_jitter_ns = 60 * US,
		.rings = true,
	};
}

static void *must(void *pointer)
{
	if (!pointer)
		abort();
	return pointer;
}

struct gpu_model *gpu_model_new(const struct gpu_model_config *config)
{
	struct gpu_model *m = must(calloc(1, sizeof(*m)));

	m->config = *config;
	m->arbiter = must(arbiter_new(&config->arbiter));
	m->random = config->seed;
	m->now = 1000 * SECOND;
	m->poll_at = m->now;
	m->context = -1;
	return m;
}

struct gpu_model *gpu_model_free(struct gpu_model *m)
{
	if (!m)
		return NULL;
	for (int i = 0; i < m->count; i++)
		free(m->tenant[i]);
	arbiter_free(m->arbiter);
	free(m);
	return NULL;
}

/* Tenants. */

static unsigned queued(const struct model_tenant *t)
{
	return t->tail - t->head;
}

static double predicted(const struct model_tenant *t, uint64_t kernel_ns)
{
	return (double)kernel_ns * (t->load.prediction > 0 ? t->load.prediction : 1.0);
}

static void draw_kernel(struct gpu_model *m, struct model_tenant *t)
{
	t->next_kernel_ns = t->load.kernel_ns;
	if (t->load.kernel_max_ns)
		t->next_kernel_ns = random_between(&m->random, t->load.kernel_ns,
						   t->load.kernel_max_ns);
}

static void begin_load(struct gpu_model *m, struct model_tenant *t)
{
	if (t->thread == THREAD_HELD && t->load.kernel_ns)
		return;
	t->thread = t->load.kernel_ns ? THREAD_AT_GATE : THREAD_OFF;
	t->thread_at = m->now > t->load.start_ns + 1000 * SECOND ? m->now
								 : t->load.start_ns + 1000 * SECOND;
	t->burst_left_ns = t->load.burst_ns;
	t->arrival_ns = t->thread_at;
	draw_kernel(m, t);
}

int gpu_model_add(struct gpu_model *m, struct arbiter_share share, const struct gpu_model_load *load)
{
	int index = arbiter_add(m->arbiter, m->now, share);
	struct model_tenant *t;

	if (index < 0)
		abort();
	t = m->tenant[index];
	if (!t)
		t = m->tenant[index] = must(malloc(sizeof(*t)));
	*t = (struct model_tenant){ .used = true, .share = share, .load = *load };
	t->flag_falls_at = t->tell_idle_at = NEVER;
	if (index >= m->count)
		m->count = index + 1;
	begin_load(m, t);
	return index;
}

void gpu_model_remove(struct gpu_model *m, int tenant)
{
	arbiter_remove(m->arbiter, tenant);
	m->tenant[tenant]->used = false;
	m->tenant[tenant]->head = m->tenant[tenant]->tail;
}

void gpu_model_set_load(struct gpu_model *m, int tenant, const struct gpu_model_load *load)
{
	m->tenant[tenant]->load = *load;
	begin_load(m, m->tenant[tenant]);
}

void gpu_model_set_share(struct gpu_model *m, int tenant, struct arbiter_share share)
{
	m->tenant[tenant]->share = share;
	if (arbiter_set_share(m->arbiter, tenant, share) < 0)
		abort();
}

void gpu_model_set_limit(struct gpu_model *m, int tenant, double limit_pct)
{
	m->tenant[tenant]->share.limit_pct = limit_pct;
	if (arbiter_set_limit(m->arbiter, tenant, limit_pct) < 0)
		abort();
}

void gpu_model_set_stopped(struct gpu_model *m, int tenant, bool stopped)
{
	struct model_tenant *t = m->tenant[tenant];

	t->stopped = stopped;
	if (!stopped && t->thread == THREAD_HELD && (t->word == LEASE_GO || t->word == LEASE_FREE)) {
		t->thread = THREAD_WAKES;
		t->thread_at = m->now;
	}
}

static int index_of(const struct gpu_model *m, const struct model_tenant *t)
{
	int i = 0;

	while (m->tenant[i] != t)
		i++;
	return i;
}

static bool has_room(const struct model_tenant *t)
{
	uint64_t depth = t->word == LEASE_GO ? DEPTH_NS : FREE_DEPTH_NS;

	if (queued(t) >= QUEUE)
		return false;
	return queued(t) < 2 || t->inflight_ns < depth;
}

static bool is_let_through(const struct gpu_model *m, const struct model_tenant *t)
{
	if (t->word == LEASE_PACED)
		return (int64_t)(arbiter_granted(m->arbiter, index_of(m, t)) - t->spent) > 0;
	return t->word == LEASE_GO || t->word == LEASE_FREE;
}

static void ring(struct gpu_model *m, const struct model_tenant *t)
{
	uint64_t at = m->now + random_between(&m->random, 5 * US, 30 * US);

	if (m->config.rings && !t->load.is_silent && at < m->poll_at)
		m->poll_at = at;
}

static void look_at_word(struct gpu_model *m, struct model_tenant *t)
{
	if (!is_let_through(m, t)) {
		if (t->thread != THREAD_HELD && t->word == LEASE_STOP)
			ring(m, t);
		t->thread = THREAD_HELD;
		t->held_since_ns = m->now;
	} else if (!has_room(t)) {
		t->thread = THREAD_FULL;
	} else {
		if (t->word == LEASE_PACED)
			t->spent += t->load.cost ? t->load.cost : DEFAULT_COST;
		t->thread = THREAD_LAUNCHES;
		t->thread_at = m->now + LAUNCH_NS;
	}
}

static void launch(struct gpu_model *m, struct model_tenant *t)
{
	if (!queued(t)) {
		t->head_full_ns = t->next_kernel_ns;
		if (!t->busy || !t->load.late_report)
			t->busy_since_ns = m->now;
	}
	t->queue[t->tail++ % QUEUE] = t->next_kernel_ns;
	t->inflight_ns += (uint64_t)predicted(t, t->next_kernel_ns);
	if (!t->busy && m->now - t->worked_at >= REST_NS)
		ring(m, t);
	t->busy = true;
	t->flag_falls_at = t->tell_idle_at = NEVER;
	t->idle_told_ns = 0;
	t->launches++;
	t->thread = THREAD_AT_GATE;
	t->thread_at = m->now;
	if (t->load.burst_ns) {
		t->burst_left_ns -= t->next_kernel_ns < t->burst_left_ns ? t->next_kernel_ns
									 : t->burst_left_ns;
		if (!t->burst_left_ns)
			t->thread = THREAD_JOINS;
	}
	draw_kernel(m, t);
}

static void run_thread(struct gpu_model *m, struct model_tenant *t)
{
	uint64_t waited;

	switch (t->thread) {
	case THREAD_THINKS:
		t->burst_left_ns = t->load.burst_ns;
		look_at_word(m, t);
		break;
	case THREAD_AT_GATE: look_at_word(m, t); break;
	case THREAD_LAUNCHES: launch(m, t); break;
	case THREAD_WAKES:
		waited = m->now - t->held_since_ns;
		if (waited > t->longest_wait_ns)
			t->longest_wait_ns = waited;
		look_at_word(m, t);
		break;
	default: break;
	}
}

static void end_burst(struct gpu_model *m, struct model_tenant *t)
{
	uint64_t think = random_between(&m->random, t->load.think_ns, t->load.think_max_ns);

	t->bursts++;
	if (t->latency_count < LATENCIES)
		t->latency_ns[t->latency_count++] = m->now - t->arrival_ns;
	t->thread = THREAD_THINKS;
	t->arrival_ns = t->load.on_schedule ? t->arrival_ns + think : m->now + 10 * US + think;
	t->thread_at = t->arrival_ns > m->now ? t->arrival_ns : m->now;
}

static void end_kernel(struct gpu_model *m, struct model_tenant *t)
{
	uint64_t was = (uint64_t)predicted(t, t->head_full_ns);

	t->head++;
	t->kernels++;
	t->inflight_ns = queued(t) && t->inflight_ns > was ? t->inflight_ns - was : 0;
	t->head_full_ns = t->queue[t->head % QUEUE];
	t->busy_shown_ns = t->busy_done_ns + m->now - t->busy_since_ns;
	if (!queued(t)) {
		t->flag_falls_at = m->now + random_between(&m->random, 25 * US, 75 * US);
		if (!t->load.late_report)
			t->busy_done_ns = t->busy_shown_ns;
	}
	if (t->thread == THREAD_FULL && (queued(t) < 2 || t->inflight_ns <= DEPTH_NS / 2)) {
		t->thread = THREAD_AT_GATE;
		t->thread_at = m->now + random_between(&m->random, 3 * US, 15 * US);
	} else if (t->thread == THREAD_JOINS && !queued(t)) {
		end_burst(m, t);
	}
}

static void flag_falls(struct gpu_model *m, struct model_tenant *t)
{
	t->busy = false;
	t->flag_falls_at = NEVER;
	t->worked_at = m->now;
	t->tell_idle_at = m->now + m->config.arbiter.idle_ns;
	if (t->word == LEASE_CLOSING || t->word == LEASE_STOP)
		ring(m, t);
	if (t->load.late_report)
		t->busy_done_ns = t->busy_shown_ns = t->busy_done_ns + m->now - t->busy_since_ns;
}

static void tell_idle(struct gpu_model *m, struct model_tenant *t)
{
	t->tell_idle_at = NEVER;
	t->idle_told_ns = m->now - t->worked_at;
	if (t->word == LEASE_GO)
		ring(m, t);
}

/* The GPU. */

static bool has_work(const struct gpu_model *m, int i)
{
	return i >= 0 && m->tenant[i] && m->tenant[i]->used && queued(m->tenant[i]);
}

/* The next context after the present one that has work; -1: none. */
static int next_context(const struct gpu_model *m)
{
	for (int k = 1; k <= m->count; k++) {
		int i = (m->context + k) % m->count;

		if (has_work(m, i))
			return i;
	}
	return -1;
}

/* Decides what the GPU does from now on. */
static void schedule_gpu(struct gpu_model *m)
{
	int next;

	if (m->now < m->gap_until)
		return;
	next = next_context(m);
	if (next < 0)
		return;
	if (has_work(m, m->context)) {
		if (next == m->context)
			m->slice_ends = m->now + SLICE_NS;
		if (m->now < m->slice_ends)
			return;
		m->gap_until = m->now + SLICE_GAP_NS;
	} else {
		m->gap_until = m->now + (m->context < 0 ? 0 : m->config.switch_ns);
	}
	m->context = next;
	m->slice_ends = m->gap_until + SLICE_NS;
}

static uint64_t gpu_event_at(const struct gpu_model *m)
{
	const struct model_tenant *t;
	uint64_t end;

	if (m->now < m->gap_until)
		return m->gap_until;
	if (!has_work(m, m->context))
		return NEVER;
	t = m->tenant[m->context];
	end = m->now + t->queue[t->head % QUEUE];
	return end < m->slice_ends || next_context(m) == m->context ? end : m->slice_ends;
}

static void advance(struct gpu_model *m, uint64_t to)
{
	if (m->now >= m->gap_until && has_work(m, m->context)) {
		struct model_tenant *t = m->tenant[m->context];

		t->queue[t->head % QUEUE] -= to - m->now;
		t->work_ns += to - m->now;
	}
	m->now = to;
	if (m->now >= m->gap_until && has_work(m, m->context) &&
	    m->tenant[m->context]->queue[m->tenant[m->context]->head % QUEUE] == 0)
		end_kernel(m, m->tenant[m->context]);
}

/* The daemon. */

static struct arbiter_observation look_at(struct gpu_model *m, const struct model_tenant *t)
{
	struct arbiter_observation seen = {
		.waiting = t->thread == THREAD_HELD || t->thread == THREAD_WAKES,
		.launching = t->thread == THREAD_LAUNCHES,
		.busy = t->busy,
		.stopped = t->stopped,
		.inflight_ns = t->inflight_ns,
		.busy_ns = t->busy_shown_ns,
		.launches = t->launches,
		.spent = t->spent,
		.rings = m->config.rings,
		.idle_ns = t->idle_told_ns,
	};

	switch (t->load.lie) {
	case LIE_IDLE:
		seen.busy = seen.launching = false;
		seen.busy_ns = seen.launches = seen.inflight_ns = 0;
		break;
	case LIE_BUSY: seen.busy = true; break;
	case LIE_INFLIGHT: seen.inflight_ns = UINT64_MAX; break;
	case LIE_GARBAGE:
		seen.inflight_ns = random_next(&m->random);
		seen.busy_ns = random_next(&m->random);
		seen.spent = random_next(&m->random);
		seen.launches = random_next(&m->random);
		break;
	case LIE_NONE: break;
	}
	return seen;
}

static void violation(struct gpu_model *m, const char *what)
{
	if (m->violations++ < 5)
		fprintf(stderr, "violation at %.6f s: %s\n",
			(double)(m->now - 1000 * SECOND) / (double)SECOND, what);
}

static void check(struct gpu_model *m)
{
	int going = 0, closing = 0, starved = 0, draining = 0;
	double window = (double)m->config.arbiter.window_ns;
	double slice = (double)m->config.arbiter.cap_slice_ns;

	if (arbiter_mode(m->arbiter) != ARBITER_LEASES) {
		m->lost_since = 0;
		return;
	}
	for (int i = 0; i < m->count; i++) {
		const struct model_tenant *t = m->tenant[i];
		struct arbiter_account account;
		double needed;

		if (!t || !t->used)
			continue;
		account = arbiter_account(m->arbiter, i);
		needed = t->share.limit_pct / 100 * window < slice
				 ? t->share.limit_pct / 100 * window
				 : slice;
		going += account.state == LEASE_GO || account.state == LEASE_FREE;
		closing += account.state == LEASE_CLOSING;
		draining += account.draining;
		if (account.state == LEASE_GO && arbiter_holder(m->arbiter) != i)
			violation(m, "GO without the lease");
		if (account.state == LEASE_FREE)
			violation(m, "FREE under leases");
		starved += t->thread == THREAD_HELD && !t->stopped && account.state == LEASE_STOP &&
			   (t->share.limit_pct >= 100 || (double)account.tokens_ns >= needed);
	}
	if (going > 1)
		violation(m, "two tenants in GO");
	/* A token waits for its window, not for what the account of a cap says. */
	if (m->config.arbiter.policy != ARBITER_POLICY_LEASE)
		return;
	if (!starved || going || closing || draining) {
		m->lost_since = 0;
	} else if (!m->lost_since) {
		m->lost_since = m->steps;
	} else if (m->steps > m->lost_since + 1) {
		violation(m, "a lease was lost");
	}
}

static void poll(struct gpu_model *m)
{
	uint64_t next;

	for (int i = 0; i < m->count; i++) {
		struct arbiter_observation seen;

		if (!m->tenant[i] || !m->tenant[i]->used)
			continue;
		seen = look_at(m, m->tenant[i]);
		arbiter_observe(m->arbiter, i, &seen);
	}
	next = arbiter_step(m->arbiter, m->now);
	if (next <= m->now)
		violation(m, "asked to be stepped in the past");
	m->steps++;
	for (int i = 0; i < m->count; i++) {
		struct model_tenant *t = m->tenant[i];
		enum lease_state word;

		if (!t || !t->used)
			continue;
		word = arbiter_state(m->arbiter, i);
		t->closings += word == LEASE_CLOSING && t->word != LEASE_CLOSING;
		t->word = word;
		if (t->thread == THREAD_HELD && !t->stopped && is_let_through(m, t)) {
			t->thread = THREAD_WAKES;
			t->thread_at = m->now + random_between(&m->random, 20 * US, 80 * US);
		}
	}
	check(m);
	m->poll_at = next + random_between(&m->random, 0, m->config.poll_jitter_ns);
	if (m->config.stall_every_ns &&
	    random_next(&m->random) % m->config.stall_every_ns < next - m->now)
		m->poll_at += random_between(&m->random, 0, m->config.stall_ns);
}

static bool has_thread_event(const struct model_tenant *t)
{
	return !t->stopped && (t->thread == THREAD_THINKS || t->thread == THREAD_AT_GATE ||
			       t->thread == THREAD_LAUNCHES || t->thread == THREAD_WAKES);
}

void gpu_model_run(struct gpu_model *m, uint64_t duration_ns)
{
	uint64_t end = m->now + duration_ns;

	while (m->now < end) {
		uint64_t at;

		schedule_gpu(m);
		at = gpu_event_at(m);
		if (m->poll_at < at)
			at = m->poll_at;
		if (end < at)
			at = end;
		for (int i = 0; i < m->count; i++) {
			const struct model_tenant *t = m->tenant[i];

			if (!t || !t->used)
				continue;
			if (has_thread_event(t) && t->thread_at < at)
				at = t->thread_at;
			if (!t->stopped && t->flag_falls_at < at)
				at = t->flag_falls_at;
			if (!t->stopped && t->tell_idle_at < at)
				at = t->tell_idle_at;
		}
		advance(m, at > m->now ? at : m->now);
		for (int i = 0; i < m->count; i++) {
			struct model_tenant *t = m->tenant[i];

			if (!t || !t->used || t->stopped)
				continue;
			if (t->flag_falls_at <= m->now)
				flag_falls(m, t);
			if (t->tell_idle_at <= m->now)
				tell_idle(m, t);
			if (has_thread_event(t) && t->thread_at <= m->now)
				run_thread(m, t);
		}
		if (m->poll_at <= m->now)
			poll(m);
	}
}

/* Answers. */

uint64_t gpu_model_now_ns(const struct gpu_model *m)
{
	return m->now;
}

struct arbiter *gpu_model_arbiter(struct gpu_model *m)
{
	return m->arbiter;
}

uint64_t gpu_model_work_ns(const struct gpu_model *m, int tenant)
{
	return m->tenant[tenant]->work_ns;
}

uint64_t gpu_model_kernels(const struct gpu_model *m, int tenant)
{
	return m->tenant[tenant]->kernels;
}

uint64_t gpu_model_bursts(const struct gpu_model *m, int tenant)
{
	return m->tenant[tenant]->bursts;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t gpu_model_take_latency_ns(struct gpu_model *m, int tenant, double part)
{
	struct model_tenant *t = m->tenant[tenant];
	unsigned count = t->latency_count, rank = (unsigned)(part * count);

	t->latency_count = 0;
	if (!count)
		return 0;
	qsort(t->latency_ns, count, sizeof(t->latency_ns[0]), compare_u64);
	return t->latency_ns[rank < count ? rank : count - 1];
}

uint64_t gpu_model_take_longest_wait_ns(struct gpu_model *m, int tenant)
{
	struct model_tenant *t = m->tenant[tenant];
	uint64_t longest = t->longest_wait_ns;

	if (t->thread == THREAD_HELD && m->now - t->held_since_ns > longest)
		longest = m->now - t->held_since_ns;
	t->longest_wait_ns = 0;
	return longest;
}

uint64_t gpu_model_closings(const struct gpu_model *m, int tenant)
{
	return m->tenant[tenant]->closings;
}

uint64_t gpu_model_steps(const struct gpu_model *m)
{
	return m->steps;
}

uint64_t gpu_model_violations(const struct gpu_model *m)
{
	return m->violations;
}
