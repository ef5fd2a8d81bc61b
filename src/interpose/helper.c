#include "interpose/helper.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "interpose/bell.h"
#include "interpose/door.h"
#include "interpose/flight.h"
#include "interpose/guest.h"
#include "interpose/hook_graph.h"
#include "interpose/hook_ipc.h"
#include "interpose/hook_pool.h"
#include "interpose/ipc_broker.h"
#include "interpose/log.h"
#include "interpose/pace.h"
#include "interpose/piece.h"
#include "interpose/real.h"
#include "interpose/swap.h"
#include "interpose/thread.h"
#include "interpose/trace.h"

/* How often the helper looks while work is in flight; docs/architecture.md has the measurement. */
#define POLL_CLOSING_NS (40 * NS_PER_US)
#define POLL_LEASE_NS (150 * NS_PER_US)
#define POLL_FREE_NS (1 * NS_PER_MS)
/*
 * Under a lease with so much in flight that the next half of it needs no look: a launch-bound program, of which every
 * query takes the driver's lock for a moment.
 */
#define POLL_AHEAD_NS (500 * NS_PER_US)
/*
 * The same of one that runs alone to be timed, if it may have work for so many of these looks in flight, and launches more often than
 * that. Looked at each 150 us, a GRU of 1,254 launches a step, on several streams, took 24.6 ms in place of 23.0 (H200). That is a launch
 * each 18 to 20 us: with a bound of 20 its trials told of 22.1 to 22.8 ms a step or of 24.1 to 25.4, with one of 50 of 22.5 to 23.7. So the bound
 * is far from what programs do that are paced by their launches.
 */
#define TRIED_POLLS 20
#define LAUNCHES_OFTEN_NS (50 * NS_PER_US)
/*
 * In free run with a thread that waits for depth: at once, then so many times in as long as the depth, 0.1 ms at the least. What
 * is in flight is reckoned by an average, so it may be a tenth of that, and the GPU would run dry until the next look. If the
 * wait lasts, it was not; then looks are rarer, up to so many times: each takes the driver's lock from who launches.
 */
#define POLLS_OF_DEPTH 100
#define POLL_DEPTH_NS (100 * NS_PER_US)
#define RARER_MOST 4
#define POLL_IDLE_NS (50 * NS_PER_MS)
/*
 * Without a heartbeat for this long, the daemon is gone, or stands still. It beats 20 times a second where there is
 * work or demand; where there is none once a second, if the word of its owner tells of its end.
 */
#define HEARTBEAT_PATIENCE_NS (250 * NS_PER_MS)
#define RESTING_PATIENCE_NS (2500 * NS_PER_MS)
#define RESTED_NS (500 * NS_PER_MS) /* sooner it does not begin to beat seldom */
#define REJOIN_EVERY_NS (50 * NS_PER_MS)
/* What a cap may save up while nobody arbitrates. */
#define LOCAL_WINDOW_NS (100 * NS_PER_MS)

static struct sys_lock start_lock;
static bool is_started;
static _Atomic bool is_leaving;
static _Atomic bool is_in_driver;
static _Atomic uint32_t bell;
static _Atomic bool is_asleep; /* ring the bell */
static uint64_t rarer = 1;     /* the looks for a thread that waits for depth, than at first */

/* The helper's own bookkeeping of a device. */
static struct {
	uint64_t busy_ns; /* up to seen_ns */
	bool is_busy;
	bool launches_often; /* as of seen_ns */
	uint64_t launches;
	uint64_t seen_ns;
	uint64_t worked_at_ns; /* work was last seen */
	bool has_told_idle;    /* since */
	uint32_t lease;        /* the word of the lease that has_lead is about */
	bool has_lead;         /* half of the depth was in flight */
	_Atomic int64_t local_tokens_ns;
} account[REGION_MAX_DEVICES];

static uint64_t heartbeat_seen_ns;
static uint32_t heartbeat_seen;
static uint64_t had_work_ns;   /* work or demand, last */
static uint64_t ended_seen_ns; /* the word of its end, first; 0: it lives */
static uint64_t rejoined_ns;
static bool is_to_give_again;    /* the new daemon knows nothing of ipc_broker.h */
static uint32_t parked_word;     /* the order to park that is in force; 0: none */
static uint64_t parked_launches; /* handed over until then */

static uint64_t heartbeat_patience_ns(const struct region_control *control, bool has_work)
{
	return has_work || !atomic_load(&control->owner) ? HEARTBEAT_PATIENCE_NS
							 : RESTING_PATIENCE_NS;
}

/* `has_work`: or demand. */
static void watch_heartbeat(bool has_work, uint64_t now_ns)
{
	const struct region_control *control = atomic_load(&guest.control);
	uint32_t beat = atomic_load_explicit(&control->heartbeat, memory_order_relaxed);
	bool has_ended = region_has_lost_owner(control);

	/* The same patience as with one that beat until it ended: its successor may be on its way. */
	if (has_ended && !ended_seen_ns)
		ended_seen_ns = heartbeat_seen_ns = now_ns;
	if (!has_ended)
		ended_seen_ns = 0;

	/* It may have beaten by the second until now, and is to beat often from here on. */
	if (has_work && heartbeat_seen_ns && now_ns - had_work_ns > RESTED_NS)
		heartbeat_seen_ns = now_ns;
	if (has_work)
		had_work_ns = now_ns;
	if (!has_ended && (beat != heartbeat_seen || !heartbeat_seen_ns)) {
		heartbeat_seen = beat;
		heartbeat_seen_ns = now_ns;
		if (atomic_load(&guest.daemon_lost)) {
			atomic_store(&guest.daemon_lost, false);
			log_debug("the daemon beats again");
		}
		return;
	}
	if (now_ns - heartbeat_seen_ns < heartbeat_patience_ns(control, has_work || has_ended))
		return;
	if (!atomic_exchange(&guest.daemon_lost, true))
		log_debug("%s: going on under the last quotas",
			  has_ended ? "the daemon has ended" : "no heartbeat from the daemon");
	if (now_ns - rejoined_ns < REJOIN_EVERY_NS)
		return;
	rejoined_ns = now_ns;
	if (!guest_rejoin())
		return;
	heartbeat_seen_ns = 0;
	is_to_give_again = true;
}

/* While nobody arbitrates, each tenant keeps its own cap; see helper_local_cap_allows(). */
static void fill_local_tokens(int index, uint64_t elapsed_ns, uint64_t used_ns)
{
	const struct region_control_device *c = guest_control_device(index);
	int64_t limit = atomic_load_explicit(&c->limit_pct_x100, memory_order_relaxed);
	int64_t most = (int64_t)LOCAL_WINDOW_NS * limit / 10000;
	int64_t tokens = atomic_load(&account[index].local_tokens_ns) +
			 (int64_t)elapsed_ns * limit / 10000 - (int64_t)used_ns;

	atomic_store(&account[index].local_tokens_ns, tokens < most ? tokens : most);
}

bool helper_local_cap_allows(int index)
{
	const struct region_control_device *c = guest_control_device(index);

	return atomic_load_explicit(&c->limit_pct_x100, memory_order_relaxed) >= 10000 ||
	       atomic_load(&account[index].local_tokens_ns) > 0;
}

static enum lease_state lease_of(int index)
{
	return lease_state_of(atomic_load(&guest_control_device(index)->lease));
}

/* A lease that lies idle is told once: whether that is still to come. */
static bool has_idle_to_tell(int index)
{
	return !account[index].is_busy && !account[index].has_told_idle &&
	       lease_of(index) == LEASE_GO;
}

static uint64_t idle_to_tell_ns(int index)
{
	return atomic_load_explicit(&guest_control_device(index)->idle_ns, memory_order_relaxed);
}

static void tell_idle(int index, uint64_t idle_ns)
{
	uint64_t idle_us = idle_ns / NS_PER_US;

	atomic_store_explicit(&guest_slot_device(index)->idle_us,
			      idle_us < UINT32_MAX ? (uint32_t)idle_us : UINT32_MAX,
			      memory_order_relaxed);
	account[index].has_told_idle = true;
	bell_ring(index);
}

/* Rings where the daemon should hear of it before its next look. `has_worked`: since the last call. */
static void ring_if_due(int index, bool has_worked, uint64_t now_ns)
{
	uint64_t idle_ns = now_ns - account[index].worked_at_ns;
	bool has_ended = has_worked && !account[index].is_busy;

	if (!has_worked) {
		if (has_idle_to_tell(index) && idle_ns >= idle_to_tell_ns(index))
			tell_idle(index, idle_ns);
		return;
	}
	atomic_store_explicit(&guest_slot_device(index)->idle_us, 0, memory_order_relaxed);
	account[index].worked_at_ns = now_ns;
	account[index].has_told_idle = false;
	/* The lease is read after the flag is down: D, having closed it, looks at the flag again. */
	if (idle_ns >= BELL_REST_NS ||
	    (has_ended && (lease_of(index) == LEASE_CLOSING || lease_of(index) == LEASE_STOP)))
		bell_ring(index);
}

/*
 * A thread that was held has no lead over the GPU: how long until it has one again tells the daemon what
 * a turn costs this tenant (arbiter/quantum.c).
 */
static void watch_ramp(int index, uint64_t used_ns, int64_t inflight_ns)
{
	const struct region_control_device *c = guest_control_device(index);
	struct region_bell *own = &atomic_load(&guest.report)->bell[index];
	uint32_t word = atomic_load(&c->lease);

	if (lease_state_of(word) != LEASE_GO || !guest_has_turn(c))
		return;
	if (word != account[index].lease) {
		account[index].lease = word;
		account[index].has_lead = false;
	}
	if (account[index].has_lead)
		return;
	account[index].has_lead = 2 * inflight_ns >=
				  (int64_t)atomic_load_explicit(&c->depth_ns, memory_order_relaxed);
	if (!account[index].has_lead)
		atomic_fetch_add_explicit(&own->ramp_ns, used_ns, memory_order_relaxed);
}

/* Tells the daemon what device `index` does. `is_busy`: by the marks, as of now_ns. */
static void report_device(int index, bool is_busy, uint64_t now_ns)
{
	struct region_slot_device *d = guest_slot_device(index);
	struct flight_device *f = &flight_devices[index];
	bool has_worked = is_busy || account[index].is_busy;
	uint64_t used_ns = 0,
		 since_ns = atomic_load_explicit(&f->busy_since_ns, memory_order_relaxed);
	int64_t inflight_ns = atomic_load_explicit(&f->inflight_ns, memory_order_relaxed);
	uint64_t launches = flight_launches(index);

	if (since_ns < account[index].seen_ns)
		since_ns = account[index].seen_ns;
	if ((is_busy || atomic_load(&d->busy)) && now_ns > since_ns) {
		used_ns = now_ns - since_ns;
		account[index].busy_ns += used_ns;
		atomic_store_explicit(&d->busy_ns, account[index].busy_ns, memory_order_relaxed);
	}
	if (account[index].seen_ns)
		fill_local_tokens(index, now_ns - account[index].seen_ns, used_ns);
	watch_ramp(index, used_ns, inflight_ns);
	account[index].launches_often = (launches - account[index].launches) * LAUNCHES_OFTEN_NS >
					now_ns - account[index].seen_ns;
	account[index].launches = launches;
	account[index].seen_ns = now_ns;
	atomic_store_explicit(&d->inflight_ns,
			      is_busy && inflight_ns > 0 ? (uint64_t)inflight_ns : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&d->launches, launches, memory_order_relaxed);
	if (!is_busy && (atomic_load(&d->busy) || atomic_load(&f->shows_busy))) {
		has_worked = true;
		/* Cleared first, looked at again after: a launch in between must not be lost. */
		flight_show_busy(d, f, false);
		if (flight_poll(now_ns, 0, 0) & (1U << index)) {
			flight_show_busy(d, f, true);
			is_busy = true;
		}
	} else if (is_busy) {
		flight_show_busy(d, f, true);
	}
	account[index].is_busy = is_busy;
	ring_if_due(index, has_worked, now_ns);
}

/* Devices (bits) by their leases. */
struct leases {
	uint32_t closing; /* nothing new will start: work runs dry, and its end is waited for, or measured */
	uint32_t in_free_run; /* and nobody waits for depth */
	bool is_any;          /* but free run */
};

static struct leases read_leases(uint32_t count)
{
	struct leases l = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		enum lease_state s = lease_of((int)i);

		if (s == LEASE_CLOSING || s == LEASE_STOP ||
		    (s == LEASE_PACED && atomic_load(&guest_slot_device((int)i)->waiting)))
			l.closing |= 1U << i;
		if (s != LEASE_FREE)
			l.is_any = true;
		else if (!atomic_load(&flight_devices[i].waiters))
			l.in_free_run |= 1U << i;
	}
	return l;
}

/*
 * The daemon is about to lock the driver under this process, or has (region.h, SWAP_ORDER_PARKED): a call
 * from here would not return before that is over, and nobody would look for the daemon meanwhile. Where the
 * daemon is lost, what the program handed over since shows that the driver is open again.
 */
static bool is_parked(uint32_t count)
{
	struct region_slot *slot = atomic_load(&guest.slot);
	uint32_t word = atomic_load(&atomic_load(&guest.control)->swap);
	uint64_t launches = 0;

	if (swap_order_of(word) != SWAP_ORDER_PARKED) {
		parked_word = 0;
		return false;
	}
	for (uint32_t i = 0; i < count; i++)
		launches += flight_launches((int)i);
	if (parked_word != word) {
		parked_word = word;
		parked_launches = launches;
	}
	atomic_store(&slot->swap_word, word);
	return !atomic_load(&guest.daemon_lost) || launches == parked_launches;
}

static uint64_t poll_free_ns(uint32_t count)
{
	uint64_t least_ns = POLL_FREE_NS;
	bool any_waits = false;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t ns = atomic_load(&guest_control_device((int)i)->free_depth_ns) /
			      POLLS_OF_DEPTH;
		if (!atomic_load(&flight_devices[i].waiters))
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

/* It runs alone to be timed. */
static bool is_tried(uint32_t index)
{
	return pace_most_x100((int)index) && lease_of((int)index) == LEASE_GO;
}

/* What is timed is how fast it is, rather than each piece: its launches are not to wait for our queries then. */
static bool is_tried_as_a_whole(uint32_t index)
{
	return account[index].launches_often &&
	       atomic_load_explicit(&guest_control_device((int)index)->depth_ns,
				    memory_order_relaxed) >= TRIED_POLLS * POLL_AHEAD_NS;
}

/* On each device where there is work, it is far ahead, and nobody waits for room. */
static bool is_far_ahead(uint32_t count, uint32_t busy)
{
	for (uint32_t i = 0; i < count; i++) {
		struct flight_device *f = &flight_devices[i];
		if (is_tried(i)) {
			if (!is_tried_as_a_whole(i))
				return false;
			continue;
		}
		if (atomic_load(&f->waiters))
			return false;
		if ((busy & (1U << i)) &&
		    atomic_load_explicit(&f->inflight_ns, memory_order_relaxed) <
			    (int64_t)(4 * POLL_AHEAD_NS))
			return false;
	}
	return true;
}

/* One look; returns how long to sleep, or until the bell is rung. */
static uint64_t look(void)
{
	uint64_t now_ns = sys_now_ns();
	uint32_t count = atomic_load(&guest.control)->device_count;
	bool any_busy = false, any_waits = false;

	if (is_parked(count)) {
		watch_heartbeat(false, now_ns);
		return POLL_IDLE_NS;
	}
	struct leases leases = read_leases(count);
	uint32_t busy = flight_poll(now_ns, leases.closing, leases.in_free_run);
	uint64_t rest_ns = POLL_IDLE_NS;

	for (uint32_t i = 0; i < count; i++) {
		report_device((int)i, busy & (1U << i), now_ns);
		if (has_idle_to_tell((int)i) && idle_to_tell_ns((int)i) < rest_ns)
			rest_ns = idle_to_tell_ns((int)i);
		any_busy = any_busy || account[i].is_busy || atomic_load(&flight_devices[i].waiters);
		any_waits = any_waits || atomic_load(&guest_slot_device((int)i)->waiting);
	}
	hook_pool_refresh(now_ns);
	shared_refresh(now_ns);
	hook_graph_refresh(now_ns);
	swap_watch(now_ns);
	piece_rest(now_ns);
	watch_heartbeat(any_busy || any_waits, now_ns);
	trace_look();
	if (unlikely(is_to_give_again))
		is_to_give_again = !ipc_broker_give_again();
	if (busy & leases.closing)
		return POLL_CLOSING_NS;
	if (any_busy && leases.is_any)
		return is_far_ahead(count, busy) ? POLL_AHEAD_NS : POLL_LEASE_NS;
	if (any_busy)
		return poll_free_ns(count);
	return rest_ns;
}

static void *helper_main(void *unused)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	uint32_t rung = 0;

	prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	prctl(PR_SET_NAME, "allot", 0, 0, 0);
	if (real.cuThreadExchangeStreamCaptureMode)
		real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t now_rung = atomic_load(&bell);

		if (rung != now_rung)
			rarer = 1;
		rung = now_rung;
		atomic_store(&is_in_driver, true);
		if (atomic_load(&is_leaving)) {
			atomic_store(&is_in_driver, false);
			return NULL;
		}
		uint64_t sleep_ns = look();
		atomic_store(&is_in_driver, false);
		atomic_store(&is_asleep, true);
		if (atomic_load(&bell) == rung)
			sys_futex_wait(&bell, rung, sleep_ns, false);
		atomic_store(&is_asleep, false);
	}
}

void helper_wake(void)
{
	atomic_fetch_add(&bell, 1);
	if (atomic_load(&is_asleep))
		sys_futex_wake(&bell, 1);
}

/*
 * At exit, before the driver's own handlers (ours is registered after cuInit, so it runs first): the
 * helper must not be inside a driver that is being torn down.
 */
static void leave(void)
{
	if (!guest_is_active())
		return; /* a forked child inherits the handler, but not the thread */
	atomic_store(&is_leaving, true);
	atomic_store(&guest.mode, GUEST_LEAVING);
	door_shut(DOOR_ALL);
	swap_leave_driver();
	for (int i = 0; i < 200 && atomic_load(&is_in_driver); i++)
		sys_sleep_ns(100 * NS_PER_US);
}

void helper_start(void)
{
	WITH_LOCK(&start_lock);
	if (is_started)
		return;
	is_started = true;
	atexit(leave);
	if (!thread_create(helper_main))
		log_write("no helper thread: work of this process is gated, but not measured");
	/* Not at its first look: what it is started for comes before that. */
	if (guest_is_active())
		trace_look();
}

void helper_reset(void)
{
	start_lock = (struct sys_lock){ 0 };
	is_started = false;
	atomic_store(&is_leaving, false);
	atomic_store(&is_in_driver, false);
	atomic_store(&is_asleep, false);
	for (int i = 0; i < REGION_MAX_DEVICES; i++) {
		account[i].busy_ns = account[i].seen_ns = account[i].worked_at_ns = 0;
		account[i].is_busy = account[i].has_told_idle = false;
	}
	heartbeat_seen_ns = rejoined_ns = 0;
}
