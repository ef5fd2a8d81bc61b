#include "library/launch/report.h"

#include <string.h>

#include "library/launch/inflight/inflight.h"
#include "library/launch/inflight/inflight_settle.h"
#include "library/launch/pace.h"
#include "library/state/bell.h"
#include "library/state/helper.h"
#include "library/state/process_state.h"
#include "library/sys/locks.h"

/* Times between two polls of the helper thread while work is in flight (measured: docs/decisions/in-flight-bounds.md). */
#define POLL_CLOSING_NS (40 * NS_PER_US)
#define POLL_LEASE_NS (150 * NS_PER_US)
#define POLL_FREE_NS (1 * NS_PER_MS)
/* Time between polls while 4 * POLL_AHEAD_NS of work is in flight under a lease. Each poll takes the driver's lock. */
#define POLL_AHEAD_NS (500 * NS_PER_US)
/*
 * If a thread waits for in-flight work in free run, predictions may be too long, so the helper thread polls at once. The time
 * to the next poll is a hundredth of the bound of in-flight work, at least POLL_DEPTH_NS. In a long wait it grows to RARER_MOST
 * times as long.
 */
#define POLLS_OF_DEPTH 100
#define POLL_DEPTH_NS (100 * NS_PER_US)
#define RARER_MOST 4
/* A thread is ahead of the GPU while this much work, or half of depth_ns if less, is in flight. */
#define LEAD_NS ((int64_t)NS_PER_MS)
/* Without a daemon, a tenant may save up the unused part of its cap for this long. */
#define LOCAL_WINDOW_NS (100 * NS_PER_MS)

/* The factor by which polls have become rarer in a long wait. */
static uint64_t rarer = 1;

/* For the helper thread. locks.report guards the fields of count_use(): report_end_of_work() calls it in other threads. */
static struct {
	uint64_t busy_ns; /* time with work in flight until seen_ns */
	bool is_busy;
	uint64_t seen_ns;       /* until when busy_ns is counted; 0 if it is not yet */
	uint64_t worked_at_ns;  /* when a poll last saw work */
	bool has_reported_idle; /* idleness was reported since worked_at_ns */
	uint32_t lease;         /* has_lead is about this lease word */
	bool has_lead;          /* the thread was ahead of the GPU (LEAD_NS) */
	_Atomic int64_t local_tokens_ns;
} account[REGION_MAX_DEVICES];

/* Adds the nanoseconds of GPU time that the tenant's cap allows in elapsed_ns, and subtracts used_ns. */
static void fill_local_tokens(int index, uint64_t elapsed_ns, uint64_t used_ns)
{
	const struct region_control_device *c = process_control_device(index);
	int64_t limit = atomic_load_explicit(&c->limit_pct_x100, memory_order_relaxed);
	int64_t most = (int64_t)LOCAL_WINDOW_NS * limit / 10000;
	int64_t tokens = atomic_load(&account[index].local_tokens_ns) +
			 (int64_t)elapsed_ns * limit / 10000 - (int64_t)used_ns;

	atomic_store(&account[index].local_tokens_ns, tokens < most ? tokens : most);
}

bool report_local_cap_allows(int index)
{
	const struct region_control_device *c = process_control_device(index);

	return atomic_load_explicit(&c->limit_pct_x100, memory_order_relaxed) >= 10000 ||
	       atomic_load(&account[index].local_tokens_ns) > 0;
}

static enum lease_state lease_of(int index)
{
	return lease_state_of(atomic_load(&process_control_device(index)->lease));
}

/* The daemon must be told when no work is in flight under LEASE_GO, once after work has ended. */
static bool must_report_idle(int index)
{
	return !account[index].is_busy && !account[index].has_reported_idle &&
	       lease_of(index) == LEASE_GO;
}

static uint64_t idle_report_delay_ns(int index)
{
	return atomic_load_explicit(&process_control_device(index)->idle_ns, memory_order_relaxed);
}

static void report_idle(int index, uint64_t idle_ns)
{
	uint64_t idle_us = idle_ns / NS_PER_US;

	atomic_store_explicit(&process_slot_device(index)->idle_us,
			      idle_us < UINT32_MAX ? (uint32_t)idle_us : UINT32_MAX,
			      memory_order_relaxed);
	account[index].has_reported_idle = true;
	bell_ring(index);
}

/* Rings the doorbell if the daemon should read the slot before its next poll. has_worked: work ran since the last call. */
static void ring_if_due(int index, bool has_worked, uint64_t now_ns)
{
	uint64_t idle_ns = now_ns - account[index].worked_at_ns;
	bool has_ended = has_worked && !account[index].is_busy;

	if (!has_worked) {
		if (must_report_idle(index) && idle_ns >= idle_report_delay_ns(index))
			report_idle(index, idle_ns);
		return;
	}
	atomic_store_explicit(&process_slot_device(index)->idle_us, 0, memory_order_relaxed);
	account[index].worked_at_ns = now_ns;
	account[index].has_reported_idle = false;
	/*
	 * Read the lease after `busy` is cleared. The daemon closes the lease, and then reads `busy` again. So this thread sees
	 * the closed lease, or the daemon sees that `busy` is cleared.
	 */
	if (idle_ns >= BELL_REST_NS ||
	    (has_ended && (lease_of(index) == LEASE_CLOSING || lease_of(index) == LEASE_STOP)))
		bell_ring(index);
}

/*
 * Under a lease, behind_ns counts the busy time while the program is not ahead of the GPU (LEAD_NS). ramp_ns counts only such
 * time at the start of each lease, until the program is first ahead: the cost of a turn (policy/lease/quantum.c).
 */
static void measure_lead(int index, uint64_t used_ns, int64_t inflight_ns)
{
	const struct region_control_device *c = process_control_device(index);
	struct region_bell *own = &atomic_load(&process_state.report)->bell[index];
	uint32_t word = atomic_load(&c->lease);

	if (lease_state_of(word) != LEASE_GO || !process_has_turn(c))
		return;
	if (word != account[index].lease) {
		account[index].lease = word;
		account[index].has_lead = false;
	}
	int64_t depth_ns = (int64_t)atomic_load_explicit(&c->depth_ns, memory_order_relaxed);

	if (inflight_ns >= LEAD_NS || 2 * inflight_ns >= depth_ns) {
		account[index].has_lead = true;
		return;
	}
	atomic_fetch_add_explicit(&own->behind_ns, used_ns, memory_order_relaxed);
	if (!account[index].has_lead)
		atomic_fetch_add_explicit(&own->ramp_ns, used_ns, memory_order_relaxed);
}

/* is_busy: work is in flight at now_ns. The caller holds locks.report. */
static void count_use(int index, bool is_busy, int64_t inflight_ns, uint64_t now_ns)
{
	struct region_slot_device *d = process_slot_device(index);
	uint64_t used_ns = 0, since_ns = atomic_load_explicit(&inflight_devices[index].busy_since_ns,
							      memory_order_relaxed);

	if (since_ns < account[index].seen_ns)
		since_ns = account[index].seen_ns;
	if ((is_busy || atomic_load(&d->busy)) && now_ns > since_ns) {
		used_ns = now_ns - since_ns;
		account[index].busy_ns += used_ns;
		atomic_store_explicit(&d->busy_ns, account[index].busy_ns, memory_order_relaxed);
	}
	if (account[index].seen_ns)
		fill_local_tokens(index, now_ns - account[index].seen_ns, used_ns);
	measure_lead(index, used_ns, inflight_ns);
	account[index].seen_ns = now_ns;
	atomic_store_explicit(&d->inflight_ns,
			      is_busy && inflight_ns > 0 ? (uint64_t)inflight_ns : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&d->launches, inflight_launches(index), memory_order_relaxed);
}

static void report_device(int index, bool is_busy, uint64_t now_ns)
{
	WITH_LOCK(&locks.report);
	struct region_slot_device *d = process_slot_device(index);
	struct inflight_device *f = &inflight_devices[index];
	/* A thread may have waited for all the work since the poll at now_ns. */
	is_busy = is_busy && !inflight_has_ended(index);
	bool has_worked = is_busy || account[index].is_busy;

	/* Then that thread may already have counted time beyond now_ns. */
	if (now_ns < account[index].seen_ns)
		now_ns = account[index].seen_ns;
	count_use(index, is_busy, atomic_load_explicit(&f->inflight_ns, memory_order_relaxed),
		  now_ns);
	if (!is_busy && (atomic_load(&d->busy) || atomic_load(&f->shows_busy))) {
		has_worked = true;
		/* Clear `busy` first and poll again, so that a launch in between is not lost. */
		inflight_show_busy(d, f, false);
		if (inflight_poll(now_ns, 0, 0) & (1U << index)) {
			inflight_show_busy(d, f, true);
			is_busy = true;
		}
	} else if (is_busy) {
		inflight_show_busy(d, f, true);
	}
	account[index].is_busy = is_busy;
	ring_if_due(index, has_worked, now_ns);
}

void report_end_of_work(int index)
{
	WITH_LOCK(&locks.report);
	struct region_slot_device *d = process_slot_device(index);
	struct inflight_device *f = &inflight_devices[index];

	/* The helper thread may have reported the end of the work already. */
	if (!atomic_load(&d->busy) || !inflight_has_ended(index))
		return;
	count_use(index, false, 0, sys_now_ns());
	inflight_show_busy(d, f, false);
	if (inflight_has_ended(index))
		return;
	/* Another thread launched while it still saw `busy` set, so it has not woken the helper thread. */
	inflight_show_busy(d, f, true);
	helper_wake();
}

static struct report_leases read_leases(uint32_t count)
{
	struct report_leases l = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		enum lease_state s = lease_of((int)i);

		if (s == LEASE_CLOSING || s == LEASE_STOP ||
		    (s == LEASE_PACED && atomic_load(&process_slot_device((int)i)->waiting)))
			l.closing |= 1U << i;
		if (s != LEASE_FREE)
			l.is_any = true;
		else if (!atomic_load(&inflight_devices[i].waiters))
			l.in_free_run |= 1U << i;
	}
	return l;
}

static uint64_t poll_free_ns(uint32_t count)
{
	uint64_t least_ns = POLL_FREE_NS;
	bool any_waits = false;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t ns = process_free_depth_ns(process_control_device((int)i)) / POLLS_OF_DEPTH;
		if (!atomic_load(&inflight_devices[i].waiters))
			continue;
		any_waits = true;
		ns = rarer * (ns < POLL_DEPTH_NS ? POLL_DEPTH_NS : ns);
		if (ns < least_ns)
			least_ns = ns;
	}
	if (any_waits && rarer < RARER_MOST)
		rarer *= 2;
	return least_ns;
}

/* No thread waits for work to end, and each busy device has at least 4 * POLL_AHEAD_NS of work in flight. */
static bool is_far_ahead(uint32_t count, uint32_t busy)
{
	for (uint32_t i = 0; i < count; i++) {
		struct inflight_device *f = &inflight_devices[i];
		if (atomic_load(&f->waiters))
			return false;
		if ((busy & (1U << i)) &&
		    atomic_load_explicit(&f->inflight_ns, memory_order_relaxed) <
			    (int64_t)(4 * POLL_AHEAD_NS))
			return false;
	}
	return true;
}

struct report report_devices(uint64_t now_ns)
{
	struct report r = { .count = atomic_load(&process_state.control)->device_count,
			    .idle_ns = REPORT_IDLE_NS };

	r.leases = read_leases(r.count);
	r.busy = inflight_poll(now_ns, r.leases.closing, r.leases.in_free_run);
	for (uint32_t i = 0; i < r.count; i++) {
		report_device((int)i, r.busy & (1U << i), now_ns);
		if (must_report_idle((int)i) && idle_report_delay_ns((int)i) < r.idle_ns)
			r.idle_ns = idle_report_delay_ns((int)i);
		r.any_busy = r.any_busy || account[i].is_busy ||
			     atomic_load(&inflight_devices[i].waiters);
		r.any_waits = r.any_waits || atomic_load(&process_slot_device((int)i)->waiting);
	}
	return r;
}

uint64_t report_next_poll_ns(const struct report *r, bool was_woken)
{
	if (was_woken)
		rarer = 1;
	if (r->busy & r->leases.closing)
		return POLL_CLOSING_NS;
	if (r->any_busy && r->leases.is_any)
		return is_far_ahead(r->count, r->busy) ? POLL_AHEAD_NS : POLL_LEASE_NS;
	if (r->any_busy)
		return poll_free_ns(r->count);
	return r->idle_ns;
}

void report_reset(void)
{
	memset(account, 0, sizeof(account));
	rarer = 1;
}
