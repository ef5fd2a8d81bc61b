#include "interpose/ahead_inside.h"

#include <stdio.h>
#include <string.h>

#include "interpose/ahead_feed.h"
#include "interpose/ahead_proof.h"
#include "interpose/config.h"
#include "interpose/door.h"
#include "interpose/log.h"
#include "interpose/real.h"

#include "driver/driver_versions.h"

#define SLEEP_NS (50 * NS_PER_MS)

struct ahead_counts ahead_counts;

static _Atomic bool is_ready;   /* ring and feeder are there */
static _Atomic int only_device; /* of this process, + 1; 0: has not used any */
static _Atomic uint32_t kept; /* CUresult of a call that failed when it was handed over; under the lock */

static void switch_off(const char *why, const char *what)
{
	if (!atomic_exchange(&ahead_queue.is_off, true))
		log_debug("no launches ahead of a lease from here on: %s%s", why, what);
}

void ahead_bypassed(const char *name)
{
	if (!atomic_load_explicit(&ahead_queue.is_off, memory_order_relaxed))
		switch_off("nothing of ours can be put before ", name);
}

/*
 * One queue of several devices would make one's work wait for the other's lease, as a queue for each would
 * lose the order between them. A process that works on two has none.
 */
bool ahead_is_only_device(int device)
{
	int known = atomic_load_explicit(&only_device, memory_order_relaxed), none = 0;

	if (likely(known == device + 1))
		return true;
	if (!known && atomic_compare_exchange_strong(&only_device, &none, device + 1))
		return true;
	if (atomic_load(&only_device) == device + 1)
		return true;
	switch_off("the process works on several devices", "");
	return false;
}

/* Of a newer driver a program may be linked with functions that no table of ours has. */
static bool is_driver_known(void)
{
	int version = 0;

	return real.cuDriverGetVersion && real.cuDriverGetVersion(&version) == CUDA_SUCCESS &&
	       version <= DRIVER_VERSIONS_NEWEST;
}

/* Ring and feeder, when they are first needed. */
static bool prepare(void)
{
	if (likely(atomic_load_explicit(&is_ready, memory_order_acquire)))
		return true;
	WITH_LOCK(&ahead_queue.lock);
	if (atomic_load(&is_ready))
		return true;
	if (!config_launch_ahead())
		switch_off("it is switched off", "");
	else if (!is_driver_known())
		switch_off("the driver is newer than the tables", "");
	else if (!ahead_queue_prepare() || !ahead_feed_start())
		switch_off("no memory, or no thread", "");
	atomic_store(&is_ready, !atomic_load(&ahead_queue.is_off));
	return atomic_load(&is_ready);
}

bool ahead_is_used(void)
{
	return atomic_load_explicit(&is_ready, memory_order_relaxed) &&
	       !atomic_load_explicit(&ahead_queue.is_off, memory_order_relaxed) && guest_is_active();
}

bool ahead_is_on(void)
{
	return !atomic_load_explicit(&ahead_queue.is_off, memory_order_relaxed) &&
	       guest_is_active() && !atomic_load(&guest.captures) &&
	       !atomic_load(&guest.daemon_lost) && prepare();
}

/* ---- waiting ---- */

/* For the log: whose calls waited, and how often. Under the queue's lock. */
#define WAITERS 64
static struct waiter {
	const char *name;
	uint64_t count;
} waiters[WAITERS];
static uint64_t waits;

static void note_wait(const char *who)
{
	waits++;
	for (struct waiter *w = waiters; w < waiters + WAITERS; w++) {
		if (!w->name)
			w->name = who;
		if (w->name == who) {
			w->count++;
			return;
		}
	}
}

/* Until so many were handed over, or a moment has passed. Holds the lock, but not meanwhile. */
static void sleep_until(uint64_t handed)
{
	struct ahead_queue *q = &ahead_queue;
	uint32_t moved = atomic_load(&q->moved);

	if (handed < q->wake_at)
		q->wake_at = handed;
	sys_unlock(&q->lock);
	sys_futex_wait(&q->moved, moved, SLEEP_NS, false);
	sys_lock(&q->lock);
}

CUresult ahead_settle(const char *who)
{
	struct ahead_queue *q = &ahead_queue;

	if (!guest_is_active() || ahead_feed_is_me())
		return CUDA_SUCCESS; /* a fork, or the end */
	WITH_LOCK(&q->lock);
	note_wait(who);
	for (uint64_t until = q->pushed; q->handed < until && guest_is_active();)
		sleep_until(until);
	CUresult result = (CUresult)atomic_exchange(&kept, 0);
	if (result != CUDA_SUCCESS && q->handed == q->pushed)
		atomic_store(&guest.ahead, 0);
	return result;
}

void ahead_failed(CUresult result)
{
	uint32_t none = 0;

	switch_off("a queued call failed", "");
	atomic_compare_exchange_strong(&kept, &none, (uint32_t)result);
}

bool ahead_keeps_error(void)
{
	return atomic_load(&kept) != 0;
}

/* ---- queueing ---- */

static int32_t inflight(int device)
{
	return atomic_load_explicit(&flight_devices[device].inflight, memory_order_relaxed);
}

static bool fits(uint32_t bytes, uint64_t ns, int device)
{
	struct ahead_queue *q = &ahead_queue;
	const struct region_control_device *c = guest_control_device(device);
	uint64_t most = atomic_load_explicit(&c->launch_ahead_ns, memory_order_relaxed);

	if (!ahead_queue_has_bytes(bytes))
		return false;
	return q->handed == q->pushed ||
	       (q->ns + ns <= most &&
		(int64_t)(q->pushed - q->handed) + inflight(device) < AHEAD_IN_FLIGHT);
}

struct ahead_record *ahead_reserve(uint32_t bytes, uint64_t ns)
{
	int device = atomic_load(&only_device) - 1; /* it is known where anything may be queued */
	struct ahead_queue *q = &ahead_queue;

	sys_lock(&q->lock);
	while (ahead_is_on() && inflight(device) < AHEAD_IN_FLIGHT) {
		if (fits(bytes, ns, device))
			return ahead_queue_reserve(bytes);
		/* An eighth of it, so that not each record that goes wakes who waits. */
		sleep_until(q->handed + (q->pushed - q->handed + 7) / 8);
	}
	sys_unlock(&q->lock);
	return NULL;
}

struct ahead_record *ahead_reserve_small(void)
{
	return ahead_reserve(sizeof(struct ahead_record), 0);
}

void ahead_push(struct ahead_record *r)
{
	struct ahead_queue *q = &ahead_queue;
	bool is_first = q->handed == q->pushed;

	ahead_queue_push(r);
	atomic_store(&guest.ahead, 1);
	if (is_first)
		door_shut(DOOR_ALL);
	atomic_fetch_add(&q->filled, 1);
	bool is_fed = atomic_load(&q->is_fed);
	sys_unlock(&q->lock);
	if (!is_fed)
		sys_futex_wake(&q->filled, 1);
}

bool ahead_settle_call(const char *who, CUresult *ret_result)
{
	CUresult result = ahead_flush(who);

	if (result == CUDA_SUCCESS)
		return false;
	*ret_result = result;
	return true;
}

bool ahead_find_target(const struct work *work, struct ahead_target *t)
{
	CUstream stream = ahead_stream_of(work);

	if (stream == CU_STREAM_PER_THREAD)
		return false;
	t->context = real_current_context();
	t->stream = stream;
	t->record = t->context ? flight_stream_of(work) : NULL;
	return t->record && t->record->context == t->context &&
	       ahead_is_only_device(t->record->device) &&
	       proof_is_there(proof_of_handle(PROOF_STREAM, stream, NULL));
}

/* ---- ends ---- */

/* The names that waited the most often, the first first. */
static const char *most_often(char *text, size_t size)
{
	bool is_told[WAITERS] = { false };
	size_t length = 0;

	*text = '\0';
	for (int n = 0; n < 5 && length < size; n++) {
		size_t most = WAITERS;
		for (size_t i = 0; i < WAITERS && waiters[i].name; i++)
			if (!is_told[i] &&
			    (most == WAITERS || waiters[i].count > waiters[most].count))
				most = i;
		if (most == WAITERS)
			break;
		is_told[most] = true;
		length += (size_t)snprintf(text + length, size - length, "%s%s %llu", n ? ", " : "",
					   waiters[most].name,
					   (unsigned long long)waiters[most].count);
	}
	return text;
}

void ahead_log(void)
{
	char names[256];

	if (!log_is_on || !atomic_load(&is_ready))
		return;
	WITH_LOCK(&ahead_queue.lock);
	log_debug("calls queued ahead of a lease: %llu; waits for them: %llu (%s); kernels not "
		  "queued: %llu for "
		  "their stream, %llu not seen before, %llu of unknown parameters",
		  (unsigned long long)ahead_queue.pushed, (unsigned long long)waits,
		  most_often(names, sizeof(names)), (unsigned long long)ahead_counts.no_stream,
		  (unsigned long long)ahead_counts.unproved,
		  (unsigned long long)ahead_counts.unknown);
}

void ahead_reset(void)
{
	ahead_queue_reset();
	memset(waiters, 0, sizeof(waiters));
	waits = 0;
	atomic_store(&is_ready, false);
	atomic_store(&kept, 0);
	atomic_store(&only_device, 0);
	atomic_store(&guest.ahead, 0);
	proof_reset();
	ahead_forget_lowered();
	ahead_feed_reset();
}
