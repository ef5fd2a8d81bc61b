#include "library/memory/ledger.h"

#include "library/state/bell.h"
#include "library/state/process_state.h"
#include "library/sys/locks.h"
#include "library/trace/trace_record.h"

/* How long a reservation waits for the decision on another process's reservation, which normally takes microseconds. */
#define DECISION_PATIENCE_NS (100 * NS_PER_MS)
/* How long a reservation waits until a restarted daemon has learned of the tenant's processes. */
#define ADOPTION_PATIENCE_NS (1200 * NS_PER_MS)
/* How long a refusal waits for the daemon's NVML query, which normally comes within 0.1 s. */
#define LOOK_PATIENCE_NS (5 * NS_PER_S)

struct tally {
	/* Sum of unslotted_bytes and of all slots' used_bytes, unnamed_bytes and fresh_bytes. */
	uint64_t used;
	uint64_t tentative; /* of the other slots */
	bool lower_asks;    /* a slot with a lower number has tentative bytes */
};

static uint32_t slot_count(const struct region_control *control)
{
	uint32_t n = atomic_load_explicit(&control->slot_limit, memory_order_acquire);
	return n < REGION_MAX_SLOTS ? n : REGION_MAX_SLOTS;
}

static struct tally tally(int index)
{
	const struct region_control *control = atomic_load(&process_state.control);
	struct region_report *report = atomic_load(&process_state.report);
	const struct region_slot *own = atomic_load(&process_state.slot);
	uint32_t count = slot_count(control);
	/* Without the daemon, unnamed_bytes and fresh_bytes may count memory that was freed since. */
	bool is_measured = !atomic_load_explicit(&process_state.daemon_lost, memory_order_relaxed);
	struct tally t = { .used = atomic_load(&control->device[index].unslotted_bytes) };
	bool past_own = false;

	for (uint32_t i = 0; i < count; i++) {
		struct region_slot_device *d = &report->slot[i].device[index];
		/*
		 * Read tentative_bytes before used_bytes, so that a reservation granted meanwhile is in at least one of them.
		 * Otherwise two reservations could be granted where only one fits.
		 */
		uint64_t tentative = atomic_load(&d->tentative_bytes);
		t.used += atomic_load(&d->used_bytes);
		if (is_measured) {
			t.used += atomic_load_explicit(&d->unnamed_bytes, memory_order_relaxed);
			t.used += atomic_load_explicit(&d->fresh_bytes, memory_order_relaxed);
		}
		if (&report->slot[i] == own) {
			past_own = true;
			continue;
		}
		t.tentative += tentative;
		if (tentative && !past_own)
			t.lower_asks = true;
	}
	return t;
}

/* Call after used_bytes rose, before the driver call, so that the peaks include all that NVML shows. Needs locks.ledger. */
static void raise_peaks(struct region_slot_device *d)
{
	uint32_t census = atomic_load(&atomic_load(&process_state.control)->census);
	uint64_t used = atomic_load_explicit(&d->used_bytes, memory_order_relaxed);

	if (used > atomic_load_explicit(&d->peak_bytes, memory_order_relaxed))
		atomic_store_explicit(&d->peak_bytes, used, memory_order_relaxed);
	if (census != atomic_load_explicit(&d->census, memory_order_relaxed) ||
	    used > atomic_load_explicit(&d->census_peak_bytes, memory_order_relaxed))
		atomic_store_explicit(&d->census_peak_bytes, used, memory_order_relaxed);
	atomic_store_explicit(&d->census, census, memory_order_release);
}

static void trace_used(int index)
{
	trace_memory(TRACE_USED, index, 0,
		     atomic_load_explicit(&process_slot_device(index)->used_bytes,
					  memory_order_relaxed));
}

static void wait_for_adoption(void)
{
	uint64_t start = 0;

	while (atomic_load_explicit(&atomic_load(&process_state.control)->adopting,
				    memory_order_acquire)) {
		uint64_t now = sys_now_ns();
		if (!start)
			start = now;
		if (now - start > ADOPTION_PATIENCE_NS)
			return;
		sys_sleep_ns(NS_PER_MS);
	}
}

static uint64_t ledger_limit(int index)
{
	uint64_t quota = ledger_quota(index), granted;

	if (likely(!atomic_load_explicit(&atomic_load(&process_state.control)->memory_waits,
					 memory_order_relaxed)) ||
	    index == REGION_HOST)
		return quota;
	granted = atomic_load(&process_control_device(index)->memory_granted_bytes);
	return granted < quota ? granted : quota;
}

/* Takes the steps in ledger.h. The caller holds locks.ledger. */
static int try_reserve(int index, uint64_t bytes)
{
	struct region_slot_device *d = process_slot_device(index);
	uint64_t start = 0;

	for (;;) {
		uint64_t limit = ledger_limit(index);
		atomic_store(&d->tentative_bytes, bytes);
		struct tally t = tally(index);
		bool is_over = bytes > limit || t.used > limit - bytes;

		if (!is_over && t.tentative <= limit - bytes - t.used) {
			atomic_fetch_add(&d->used_bytes, bytes);
			atomic_store(&d->tentative_bytes, 0);
			return 0;
		}
		uint64_t now = sys_now_ns();
		if (!start)
			start = now;
		if (is_over || now - start > DECISION_PATIENCE_NS) {
			atomic_store(&d->tentative_bytes, 0);
			return -ENOMEM;
		}
		if (t.lower_asks)
			atomic_store(&d->tentative_bytes, 0);
		sys_sleep_ns(20 * NS_PER_US);
	}
}

int ledger_reserve(int index, uint64_t bytes, bool count_denial)
{
	wait_for_adoption();
	WITH_LOCK(&locks.ledger);
	struct region_slot_device *d = process_slot_device(index);
	int error = try_reserve(index, bytes);

	if (!error) {
		raise_peaks(d);
		trace_used(index);
	} else if (count_denial) {
		atomic_fetch_add_explicit(&d->denied, 1, memory_order_relaxed);
		trace_memory(TRACE_DENIED, index, 0, bytes);
	}
	return error;
}

/* The caller holds locks.ledger. */
static void subtract_clamped(_Atomic uint64_t *word, uint64_t bytes)
{
	uint64_t held = atomic_load(word);
	atomic_fetch_sub(word, bytes < held ? bytes : held);
}

void ledger_release(int index, uint64_t bytes)
{
	WITH_LOCK(&locks.ledger);
	subtract_clamped(&process_slot_device(index)->used_bytes, bytes);
	trace_used(index);
}

void ledger_count_denial(int index)
{
	atomic_fetch_add_explicit(&process_slot_device(index)->denied, 1, memory_order_relaxed);
	trace_memory(TRACE_DENIED, index, 0, 0);
}

int ledger_reserve_context(int index, uint64_t bytes)
{
	int error = ledger_reserve(index, bytes, false);
	if (!error) {
		WITH_LOCK(&locks.ledger);
		atomic_fetch_add(&process_slot_device(index)->context_used_bytes, bytes);
	}
	return error;
}

void ledger_release_context(int index, uint64_t bytes)
{
	WITH_LOCK(&locks.ledger);
	struct region_slot_device *d = process_slot_device(index);
	subtract_clamped(&d->context_used_bytes, bytes);
	subtract_clamped(&d->used_bytes, bytes);
	trace_used(index);
	/* Without a context, the process has no code on the GPU, and so no memory that only NVML shows. */
	if (!atomic_load(&d->context_used_bytes)) {
		atomic_store_explicit(&d->unnamed_bytes, 0, memory_order_relaxed);
		atomic_store_explicit(&d->fresh_bytes, 0, memory_order_relaxed);
	}
}

void ledger_make_fresh(int index, uint64_t bytes)
{
	WITH_LOCK(&locks.ledger);
	struct region_slot_device *d = process_slot_device(index);
	/* Add first, so that the bytes may count twice but are never left out. A reservation that then fails is tried again. */
	atomic_fetch_add(&d->fresh_bytes, bytes);
	subtract_clamped(&d->used_bytes, bytes);
	bell_ring(index);
}

void ledger_add_fresh(int index, uint64_t bytes)
{
	atomic_fetch_add(&process_slot_device(index)->fresh_bytes, bytes);
	if (bytes)
		bell_ring(index);
}

void ledger_release_unnamed(int index, uint64_t bytes)
{
	WITH_LOCK(&locks.ledger);
	struct region_slot_device *d = process_slot_device(index);
	uint64_t fresh = atomic_load(&d->fresh_bytes);
	subtract_clamped(&d->fresh_bytes, bytes);
	if (bytes > fresh)
		subtract_clamped(&d->unnamed_bytes, bytes - fresh);
}

void ledger_mark_unsure(int index)
{
	struct region_slot_device *d = process_slot_device(index);

	if (unlikely(!atomic_load_explicit(&d->unsure, memory_order_relaxed)))
		atomic_store(&d->unsure, 1);
}

static bool is_any_fresh(int index)
{
	const struct region_control *control = atomic_load(&process_state.control);
	const struct region_report *report = atomic_load(&process_state.report);

	for (uint32_t i = 0, count = slot_count(control); i < count; i++)
		if (atomic_load_explicit(&report->slot[i].device[index].fresh_bytes,
					 memory_order_relaxed))
			return true;
	return false;
}

bool ledger_wait_for_nvml(int index)
{
	uint64_t begin = sys_now_ns();

	if (!is_any_fresh(index))
		return false;
	while (is_any_fresh(index) && !atomic_load(&process_state.daemon_lost) &&
	       sys_now_ns() - begin < LOOK_PATIENCE_NS)
		sys_sleep_ns(NS_PER_MS);
	return true;
}

void ledger_adjust(int index, int64_t bytes)
{
	WITH_LOCK(&locks.ledger);
	struct region_slot_device *d = process_slot_device(index);
	if (bytes < 0) {
		subtract_clamped(&d->used_bytes, (uint64_t)-bytes);
	} else {
		atomic_fetch_add(&d->used_bytes, (uint64_t)bytes);
		raise_peaks(d);
	}
}

uint64_t ledger_used(int index)
{
	return tally(index).used;
}

uint64_t ledger_quota(int index)
{
	return atomic_load_explicit(&process_control_device(index)->quota_bytes,
				    memory_order_relaxed);
}

void ledger_move(struct region_slot *old_slot, struct region_slot *new_slot,
		 void (*publish)(void *), void *context)
{
	WITH_LOCK(&locks.ledger);
	for (int i = 0; i <= REGION_HOST && old_slot; i++) {
		struct region_slot_device *from = &old_slot->device[i], *to = &new_slot->device[i];
		atomic_store(&to->used_bytes, atomic_load(&from->used_bytes));
		atomic_store(&to->context_used_bytes, atomic_load(&from->context_used_bytes));
		atomic_store(&to->peak_bytes, atomic_load(&from->peak_bytes));
		atomic_store(&to->denied, atomic_load(&from->denied));
		atomic_store(&to->unsure, atomic_load(&from->unsure));
		atomic_store(&to->fresh_bytes,
			     atomic_load(&from->unnamed_bytes) + atomic_load(&from->fresh_bytes));
		atomic_store(&to->launches, atomic_load(&from->launches));
		atomic_store(&to->busy_ns, atomic_load(&from->busy_ns));
		atomic_store(&to->waited_ns, atomic_load(&from->waited_ns));
		atomic_store(&to->busy, atomic_load(&from->busy));
	}
	atomic_store(&new_slot->migrated, 1);
	publish(context);
}
