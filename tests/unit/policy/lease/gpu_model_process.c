#include "gpu_model_inside.h"

#define FREE_DEPTH_NS (20 * MS)
#define GROUP_FREE_DEPTH_NS (10 * MS) /* the daemon's free_depth if there are other tenants */
#define LAUNCH_NS 2500
#define QUIET_NS (20 * MS) /* after a shorter pause, work or demand does not ring the doorbell */
#define DEFAULT_COST (132 * 256) /* tokens of a launch, under LEASE_PACED */

unsigned process_queued(const struct model_process *p)
{
	return p->tail - p->head;
}

/* Returns the load that applies to the present burst. */
static const struct gpu_model_load *part_of(const struct model_process *p)
{
	unsigned every = p->load.other_every;

	return every && p->bursts % every == every - 1 ? p->load.other : &p->load;
}

static double predicted(const struct model_process *p, uint64_t kernel_ns)
{
	return (double)kernel_ns * (p->load.prediction > 0 ? p->load.prediction : 1.0);
}

static void draw_kernel(struct gpu_model *m, struct model_process *p)
{
	const struct gpu_model_load *load = part_of(p);

	p->next_kernel_ns = load->kernel_ns;
	if (load->tail_kernel_ns &&
	    (double)p->burst_left_ns <= load->tail_part * (double)load->burst_ns)
		p->next_kernel_ns = load->tail_kernel_ns;
	if (load->kernel_max_ns)
		p->next_kernel_ns = random_between(&m->random, load->kernel_ns, load->kernel_max_ns);
}

void process_begin_load(struct gpu_model *m, struct model_process *p)
{
	if (p->thread == THREAD_HELD && p->load.kernel_ns)
		return;
	p->thread = p->load.kernel_ns ? THREAD_AT_GATE : THREAD_OFF;
	p->thread_at = m->now > p->load.start_ns + BEGIN_NS ? m->now : p->load.start_ns + BEGIN_NS;
	p->bursts = 0;
	p->burst_left_ns = part_of(p)->burst_ns;
	p->arrival_ns = p->thread_at;
	draw_kernel(m, p);
}

static uint64_t depth_ns(const struct gpu_model *m, const struct model_process *p)
{
	return arbiter_depth_ns(m->arbiter, p->tenant->index,
				m->tenants > 1 ? GROUP_FREE_DEPTH_NS : FREE_DEPTH_NS);
}

static bool has_room(const struct gpu_model *m, const struct model_process *p)
{
	uint64_t depth = FREE_DEPTH_NS;

	if (p->tenant->word == LEASE_GO || (p->tenant->word == LEASE_PACED && p->tenant->group))
		depth = depth_ns(m, p);
	else if (p->tenant->group)
		depth = GROUP_FREE_DEPTH_NS;

	if (process_queued(p) >= QUEUE)
		return false;
	return process_queued(p) < 2 || p->inflight_ns < depth;
}

bool process_is_let_through(const struct gpu_model *m, const struct model_process *p)
{
	if (p->tenant->word == LEASE_PACED)
		return (int64_t)(arbiter_granted(m->arbiter, p->tenant->index) - p->tenant->spent) >
		       0;
	if (p->tenant->word == LEASE_GO)
		return !p->tenant->turns.turn || p->tenant->turns.turn == p->slot + 1;
	return p->tenant->word == LEASE_FREE;
}

static void ring(struct gpu_model *m, const struct model_process *p)
{
	uint64_t at = m->now + random_between(&m->random, 5 * US, 30 * US);

	if (m->config.rings && !p->load.is_silent && at < m->poll_at)
		m->poll_at = at;
}

double process_part(const struct model_process *p)
{
	double part = p->load.part > 0 ? p->load.part : 1, most = p->tenant->percentage / 100;

	return part < most ? part : most;
}

static void pay(struct model_process *p)
{
	double work_ns = predicted(p, p->next_kernel_ns);

	if (!p->tenant->group) {
		p->tenant->spent += p->load.cost ? p->load.cost : DEFAULT_COST;
		return;
	}
	p->tenant->spent += (uint64_t)work_ns + 1;
	p->tenant->paid_work_ns += (uint64_t)work_ns;
}

static void read_word(struct gpu_model *m, struct model_process *p)
{
	if (!process_is_let_through(m, p)) {
		if (p->thread != THREAD_HELD &&
		    (p->tenant->word == LEASE_STOP || p->tenant->word == LEASE_GO))
			ring(m, p);
		p->thread = THREAD_HELD;
		p->held_since_ns = m->now;
	} else if (!has_room(m, p)) {
		p->thread = THREAD_FULL;
		p->held_since_ns = m->now;
	} else {
		p->pays = p->tenant->word == LEASE_PACED ||
			  (p->tenant->word == LEASE_GO && p->tenant->group);
		/* A member of a space group pays when the launch is in the driver. */
		if (p->pays && !p->tenant->group)
			pay(p);
		if (p->burst_ended_at && m->now > p->burst_ended_at + p->gate_ns)
			p->gap_ns += m->now - p->burst_ended_at - p->gate_ns;
		p->burst_ended_at = 0;
		p->thread = THREAD_LAUNCHES;
		p->thread_at = m->now + (part_of(p)->launch_ns ? part_of(p)->launch_ns : LAUNCH_NS);
		if (part_of(p)->gap_every && p->launches % part_of(p)->gap_every == 0)
			p->thread_at += random_between(&m->random, part_of(p)->gap_ns,
						       part_of(p)->gap_max_ns);
	}
}

void process_end_ramp(struct gpu_model *m, struct model_process *p)
{
	if (p->ramp_since)
		p->ramp_ns += m->now - p->ramp_since;
	p->ramp_since = 0;
}

static bool is_ahead(const struct gpu_model *m, const struct model_process *p)
{
	return p->inflight_ns >= MS || 2 * p->inflight_ns >= depth_ns(m, p);
}

void process_watch_behind(struct gpu_model *m, struct model_process *p)
{
	if (p->behind_since)
		p->behind_ns += m->now - p->behind_since;
	p->behind_since = p->tenant->word == LEASE_GO && p->busy && !is_ahead(m, p) ? m->now : 0;
}

static void watch_ramp(struct gpu_model *m, struct model_process *p)
{
	process_watch_behind(m, p);
	if (p->tenant->word != LEASE_GO)
		return;
	if (p->lease != p->tenant->leases) {
		p->lease = p->tenant->leases;
		p->ramp_since = m->now;
	}
	if (is_ahead(m, p))
		process_end_ramp(m, p);
}

static void launch(struct gpu_model *m, struct model_process *p)
{
	if (!process_queued(p) && (!p->busy || !p->load.late_report))
		p->busy_since_ns = m->now;
	p->queue[p->tail++ % QUEUE] = p->next_kernel_ns;
	p->inflight_ns += (uint64_t)predicted(p, p->next_kernel_ns);
	if (p->pays && p->tenant->group)
		pay(p);
	if (!p->busy &&
	    (m->now - p->worked_at >= QUIET_NS ||
	     arbiter_wants_sync_point(m->arbiter, p->tenant->index) == SYNC_POINT_ENDS_USE))
		ring(m, p);
	p->busy = true;
	p->flag_falls_at = p->report_idle_at = NEVER;
	p->reported_idle_ns = 0;
	p->launches++;
	watch_ramp(m, p);
	p->thread = THREAD_AT_GATE;
	p->thread_at = m->now + p->load.compute_ns;
	if (p->load.burst_ns) {
		p->burst_left_ns -= p->next_kernel_ns < p->burst_left_ns ? p->next_kernel_ns
									 : p->burst_left_ns;
		if (!p->burst_left_ns && p->load.never_waits) {
			p->tenant->bursts++;
			p->bursts++;
			p->burst_left_ns = part_of(p)->burst_ns;
		} else if (!p->burst_left_ns) {
			p->thread = THREAD_JOINS;
		}
	}
	draw_kernel(m, p);
}

void process_run_thread(struct gpu_model *m, struct model_process *p)
{
	uint64_t waited;

	switch (p->thread) {
	case THREAD_THINKS:
		p->burst_left_ns = part_of(p)->burst_ns;
		if (p->load.tail_kernel_ns || p->load.other)
			draw_kernel(m, p);
		read_word(m, p);
		break;
	case THREAD_AT_GATE: read_word(m, p); break;
	case THREAD_LAUNCHES: launch(m, p); break;
	case THREAD_WAKES:
		waited = m->now - p->held_since_ns;
		p->gate_ns += waited;
		if (waited > p->tenant->longest_wait_ns)
			p->tenant->longest_wait_ns = waited;
		read_word(m, p);
		break;
	default: break;
	}
}

static void note_latency(const struct gpu_model *m, const struct model_process *p)
{
	struct model_tenant *t = p->tenant;
	uint64_t took_ns = m->now - p->arrival_ns;

	if (part_of(p) == &p->load && t->latency_count < LATENCIES)
		t->latency_ns[t->latency_count++] = took_ns;
	if (part_of(p) != &p->load && t->other_count < LATENCIES)
		t->other_latency_ns[t->other_count++] = took_ns;
}

static void end_burst(struct gpu_model *m, struct model_process *p)
{
	const struct gpu_model_load *load = part_of(p);
	uint64_t think = random_between(&m->random, load->think_ns, load->think_max_ns);

	p->tenant->bursts++;
	p->sync_points += load->reports_sync_points;
	p->burst_ended_at = load->reports_sync_points ? m->now : 0;
	p->gate_ns = 0;
	enum region_sync_point wanted = load->reports_sync_points
						? arbiter_wants_sync_point(m->arbiter,
									   p->tenant->index)
						: SYNC_POINT_UNTOLD;
	if (wanted) {
		process_flag_falls(m, p);
		ring(m, p);
	}
	note_latency(m, p);
	p->bursts++;
	p->thread = THREAD_THINKS;
	p->arrival_ns = load->on_schedule ? p->arrival_ns + think : m->now + 10 * US + think;
	p->thread_at = p->arrival_ns > m->now ? p->arrival_ns : m->now;
}

/* Removes running kernel number `which` from the queue. Returns its length in ns. */
static uint64_t take_kernel(struct model_process *p, unsigned which)
{
	uint64_t length_ns = p->queue[(p->head + which) % QUEUE];

	for (unsigned i = which; i > 0; i--)
		p->queue[(p->head + i) % QUEUE] = p->queue[(p->head + i - 1) % QUEUE];
	p->head++;
	p->run_count--;
	for (unsigned i = which; i < p->run_count; i++)
		p->left_ns[i] = p->left_ns[i + 1];
	return length_ns;
}

void process_end_kernel(struct gpu_model *m, struct model_process *p, unsigned which)
{
	uint64_t was = (uint64_t)predicted(p, take_kernel(p, which));

	p->tenant->kernels++;
	p->inflight_ns = process_queued(p) && p->inflight_ns > was ? p->inflight_ns - was : 0;
	p->busy_shown_ns = p->busy_done_ns + m->now - p->busy_since_ns;
	process_watch_behind(m, p);
	if (!process_queued(p)) {
		p->flag_falls_at = m->now + random_between(&m->random, 25 * US, 75 * US);
		if (!p->load.late_report)
			p->busy_done_ns = p->busy_shown_ns;
	}
	if (p->thread == THREAD_FULL &&
	    (process_queued(p) < 2 || p->inflight_ns <= depth_ns(m, p) / 2)) {
		p->gate_ns += m->now - p->held_since_ns;
		p->thread = THREAD_AT_GATE;
		p->thread_at = m->now + random_between(&m->random, 3 * US, 15 * US);
	} else if (p->thread == THREAD_JOINS && !process_queued(p)) {
		end_burst(m, p);
	}
}

/* Returns how long a process is idle before it reports that, as src/daemon/arbitrate/arbitration_turns.c publishes it. */
static uint64_t patience_ns(const struct gpu_model *m, const struct model_tenant *t)
{
	uint64_t turn_ns = turns_patience_ns(&t->turns, t->member, t->members);
	uint64_t own_ns = arbiter_patience_ns(m->arbiter, t->index);

	return turn_ns < own_ns ? turn_ns : own_ns;
}

void process_flag_falls(struct gpu_model *m, struct model_process *p)
{
	p->busy = false;
	process_watch_behind(m, p);
	p->flag_falls_at = NEVER;
	p->worked_at = m->now;
	p->report_idle_at = m->now + patience_ns(m, p->tenant);
	if (p->tenant->word == LEASE_CLOSING || p->tenant->word == LEASE_STOP)
		ring(m, p);
	if (p->load.late_report)
		p->busy_done_ns = p->busy_shown_ns = p->busy_done_ns + m->now - p->busy_since_ns;
}

void process_report_idle(struct gpu_model *m, struct model_process *p)
{
	p->report_idle_at = NEVER;
	p->reported_idle_ns = m->now - p->worked_at;
	if (p->tenant->word == LEASE_GO)
		ring(m, p);
}

uint64_t process_thread_at(const struct model_process *p)
{
	bool runs = p->thread == THREAD_THINKS || p->thread == THREAD_AT_GATE ||
		    p->thread == THREAD_LAUNCHES || p->thread == THREAD_WAKES;

	return runs && !p->tenant->stopped ? p->thread_at : NEVER;
}
