#include "daemon/arbitrate/observe.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/util/procfs.h"

/* One hour. Larger predictions of in-flight work are cut to it. */
#define INFLIGHT_MAX_NS UINT64_C(3600000000000)

#define load(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define load_ordered(field) atomic_load_explicit(&(field), memory_order_seq_cst)

int observer_add(struct observer *o, unsigned slot, int pid, uint64_t now_ns)
{
	if (o->count == o->capacity) {
		size_t capacity = o->capacity ? 2 * o->capacity : 4;
		void *p = reallocarray(o->process, capacity, sizeof(*o->process));
		if (!p)
			return -ENOMEM;
		o->process = p;
		p = reallocarray(o->turn, capacity, sizeof(*o->turn));
		if (!p)
			return -ENOMEM;
		o->turn = p;
		o->capacity = capacity;
	}
	o->turn[o->count] = (struct turns_process){ .slot = slot };
	o->process[o->count++] =
		(struct observed_process){ .slot = slot, .pid = pid, .since_ns = now_ns };
	return 0;
}

void observer_remove(struct observer *o, unsigned slot)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->process[i].slot == slot) {
			o->process[i] = o->process[--o->count];
			o->turn[i] = o->turn[o->count];
			return;
		}
}

void observer_free(struct observer *o)
{
	free(o->process);
	free(o->turn);
	o->process = NULL;
	o->turn = NULL;
	o->count = o->capacity = 0;
}

/* Never adds more busy time in total than passed since observer_add(). */
static void add_progress(struct observer *o, struct observed_process *p,
			 const struct region_slot *slot, uint64_t now_ns)
{
	const struct region_slot_device *d = &slot->device[o->device];
	uint64_t busy = load(d->busy_ns), launches = load(d->launches);

	/* The process has just copied its counters from the report of an earlier daemon, so this is no new work. */
	if (!p->migrated && load(slot->migrated)) {
		p->migrated = true;
		p->busy_seen = busy;
		p->launches_seen = launches;
		return;
	}
	if (busy > p->busy_seen) {
		uint64_t most = now_ns - p->since_ns - p->busy_credited_ns;
		uint64_t grown = busy - p->busy_seen;
		grown = grown < most ? grown : most;
		p->busy_credited_ns += grown;
		o->busy_ns += grown;
	}
	p->busy_seen = busy;
	if (launches > p->launches_seen)
		o->launches += launches - p->launches_seen;
	p->launches_seen = launches;
}

static bool is_held_elsewhere(const struct region_slot *slot, unsigned device)
{
	for (unsigned k = 0; k < REGION_MAX_DEVICES; k++)
		if (k != device && load_ordered(slot->device[k].waiting))
			return true;
	return false;
}

/* True if the process waits at another device's gate, and that counts here (observer.in_gang). Call after add_progress(). */
static bool waits_with_others(const struct observer *o, struct observed_process *p,
			      const struct region_slot *slot)
{
	bool is_held = o->in_gang && is_held_elsewhere(slot, o->device);

	if (is_held && !p->is_held_elsewhere) {
		p->comes_here = p->launches_seen != p->launches_when_held;
		p->launches_when_held = p->launches_seen;
	}
	p->is_held_elsewhere = is_held;
	return is_held && p->comes_here;
}

static bool all_stopped(const struct observer *o)
{
	for (size_t i = 0; i < o->count; i++)
		if (!procfs_is_stopped(o->process[i].pid))
			return false;
	return o->count > 0;
}

/*
 * Reads /proc to see whether the tenant's processes are stopped, at most once per OBSERVE_STALL_NS. Does so only if a tenant
 * with the lease and with work or demand makes no progress, or if they were stopped at the last reading.
 */
static void check_stopped(struct observer *o, const struct arbiter_observation *seen,
			  uint64_t now_ns, bool has_lease)
{
	uint64_t progress = seen->launches + seen->busy_ns + seen->inflight_ns;
	bool has_work = seen->waiting || seen->launching || seen->busy;
	if (progress != o->progress || !(has_lease && has_work)) {
		o->progress = progress;
		o->progress_ns = now_ns;
		if (!o->stopped)
			return;
	}
	if (!o->stopped && now_ns - o->progress_ns < OBSERVE_STALL_NS)
		return;
	if (now_ns - o->checked_ns < OBSERVE_STALL_NS)
		return;
	o->checked_ns = now_ns;
	o->stopped = all_stopped(o);
}

static uint64_t believed_inflight_ns(const struct region_slot_device *d)
{
	uint64_t inflight = load(d->inflight_ns);
	return inflight < INFLIGHT_MAX_NS ? inflight : INFLIGHT_MAX_NS;
}

/* Reads `launching` before `busy`, so that a launch that ends in between is seen as busy. */
static struct turns_observation add_slot_state(const struct region_slot_device *d,
					       struct arbiter_observation *sum)
{
	bool launching = load_ordered(d->launching) != 0;
	bool waiting = load_ordered(d->waiting) != 0;
	bool busy = load_ordered(d->busy) != 0;
	sum->launching |= launching;
	sum->waiting |= waiting;
	sum->busy |= busy;
	return (struct turns_observation){ .waits = waiting,
					   .works = launching || busy,
					   .idle_ns = load(d->idle_us) * UINT64_C(1000),
					   .inflight_ns = believed_inflight_ns(d),
					   .launches = load(d->launches),
					   .stuck = load(d->stuck) };
}

struct arbiter_observation observer_read(struct observer *o, uint64_t now_ns, bool has_lease)
{
	struct arbiter_observation seen = { 0 };
	o->has_new_memory = o->has_memory_request = false;
	for (size_t i = 0; i < o->count; i++) {
		struct observed_process *p = &o->process[i];
		const struct region_slot *slot = &o->report->slot[p->slot];
		const struct region_slot_device *d = &slot->device[o->device];
		struct turns_observation own = add_slot_state(d, &seen);
		seen.inflight_ns += own.inflight_ns;
		seen.working += own.works;
		/* The tenant is idle since the last of its processes became idle. */
		if (i == 0 || own.idle_ns < seen.idle_ns)
			seen.idle_ns = own.idle_ns;
		turns_observe(&o->turns, &o->turn[i], &own, now_ns);
		o->has_new_memory |= load(d->fresh_bytes) != 0;
		uint32_t ask = load_ordered(o->report->want[p->slot][o->device].ask);
		o->has_memory_request |= ask != p->request_seen;
		p->request_seen = ask;
		add_progress(o, p, slot, now_ns);
		seen.waiting |= waits_with_others(o, p, slot);
	}
	seen.busy_ns = o->busy_ns;
	seen.launches = o->launches;
	if (o->count)
		check_stopped(o, &seen, now_ns, has_lease);
	else
		o->stopped = false;
	seen.stopped = o->stopped;
	return seen;
}

bool observer_publish_recent(struct observer *o, struct region_report *report)
{
	bool any = false;
	for (size_t i = 0; i < o->count; i++) {
		struct observed_process *p = &o->process[i];
		p->recent_ns -= p->recent_ns / OBSERVE_FADE;
		p->recent_ns += p->busy_credited_ns - p->recent_seen_ns;
		p->recent_seen_ns = p->busy_credited_ns;
		/* Negligible: less than 0.1 % of a busy process's sum. */
		if (p->recent_ns < 1000000)
			p->recent_ns = 0;
		uint64_t recent_us = p->recent_ns / 1000;
		atomic_store_explicit(&report->slot[p->slot].device[o->device].recent_us,
				      recent_us < UINT32_MAX ? (uint32_t)recent_us : UINT32_MAX,
				      memory_order_relaxed);
		any |= recent_us != 0;
	}
	return any;
}
