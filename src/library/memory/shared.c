#include "library/memory/shared.h"

#include "library/memory/holding.h"
#include "library/memory/exports.h"
#include "library/state/process_state.h"
#include "library/sys/locks.h"

#define REFRESH_EVERY_NS (20 * NS_PER_MS)
#define FIRST_CAPACITY 64

struct entry {
	struct shared s;
	uint32_t again; /* imports after the first */
	bool is_charged;
};

/* Guarded by locks.shared, which is never held during a driver call. */
static struct entry *list;
static size_t capacity;
static _Atomic uint32_t uncharged; /* imports for which another process is charged */

static bool is_in(const struct entry *e)
{
	return e->s.kind == SHARED_IMPORTED_MEMORY || e->s.kind == SHARED_IMPORTED_PHYSICAL ||
	       e->s.kind == SHARED_IMPORTED_POOL;
}

static bool make_room(void)
{
	size_t more = capacity ? capacity * 2 : FIRST_CAPACITY;

	if (process_state.shared < capacity)
		return true;
	void *at = sys_map(list, capacity * sizeof(*list), more * sizeof(*list));
	if (!at)
		return false;
	list = at;
	capacity = more;
	return true;
}

static struct entry *find(enum shared_kind kind, uint64_t id)
{
	for (size_t i = 0; i < process_state.shared; i++)
		if (list[i].s.id == id && list[i].s.kind == kind)
			return &list[i];
	return NULL;
}

static void add(const struct shared *s, bool is_charged)
{
	struct entry *e = &list[process_state.shared];

	*e = (struct entry){ .s = *s, .is_charged = is_charged };
	ledger_mark_unsure(s->index);
	if (is_in(e) && !is_charged)
		atomic_fetch_add(&uncharged, 1);
	atomic_fetch_add(&process_state.shared, 1);
}

/* Charges this process for imported memory without a live owner. It already holds that memory, so the quota does not matter. */
static void claim_and_charge(struct entry *e)
{
	if (e->is_charged || !is_in(e) || !exports_claim(e->s.key))
		return;
	ledger_adjust(e->s.index, (int64_t)e->s.bytes);
	e->is_charged = true;
	atomic_fetch_sub(&uncharged, 1);
}

/* Before a charge is given back, another entry of this process for the memory is charged. Needs locks.shared. */
static void drop(struct entry *e)
{
	struct entry gone = *e;

	atomic_fetch_sub(&process_state.shared, 1);
	*e = list[process_state.shared];
	if (!gone.is_charged) {
		atomic_fetch_sub(&uncharged, is_in(&gone));
		return;
	}
	exports_release(gone.s.key);
	for (size_t i = 0; i < process_state.shared; i++)
		if (list[i].s.key == gone.s.key)
			claim_and_charge(&list[i]);
	if (is_in(&gone))
		ledger_release(gone.s.index, gone.s.bytes);
}

void shared_record_export(const struct shared *given)
{
	WITH_LOCK(&locks.shared);
	if (!make_room())
		return;
	exports_claim(given->key);
	add(given, true);
}

bool shared_record_import(const struct shared *taken)
{
	struct holding h = { .device = taken->index, .bytes = taken->bytes };
	bool is_first;

	{
		WITH_LOCK(&locks.shared);
		if (!make_room())
			return false;
		is_first = exports_claim(taken->key);
		if (!is_first)
			add(taken, false);
	}
	if (!is_first)
		return true;
	/* charge_begin() may trim memory pools, which calls the driver, so locks.shared must not be held here. */
	if (!charge_begin(&h)) {
		exports_release(taken->key);
		return false;
	}
	WITH_LOCK(&locks.shared);
	if (!make_room()) {
		exports_release(taken->key);
		ledger_release(h.device, h.bytes);
		return false;
	}
	add(taken, true);
	return true;
}

bool shared_add_import(enum shared_kind kind, uint64_t id)
{
	WITH_LOCK(&locks.shared);
	struct entry *e = find(kind, id);
	if (e)
		e->again++;
	return e;
}

void shared_remove_import(enum shared_kind kind, uint64_t id)
{
	WITH_LOCK(&locks.shared);
	struct entry *e = find(kind, id);
	if (e && e->again)
		e->again--;
	else if (e)
		drop(e);
}

/* Returns the charge for an import that has grown; device -1: none. If another process is charged, records the new size. */
static struct holding growth(enum shared_kind kind, uint64_t id, uint64_t bytes)
{
	struct holding more = { .device = -1 };

	WITH_LOCK(&locks.shared);
	struct entry *e = find(kind, id);
	if (!e || bytes <= e->s.bytes)
		return more;
	if (e->is_charged)
		more = (struct holding){ .device = e->s.index, .bytes = bytes - e->s.bytes };
	else
		e->s.bytes = bytes;
	return more;
}

bool shared_grow(enum shared_kind kind, uint64_t id, uint64_t bytes)
{
	struct holding more = { .device = -1 };

	if (shared_any())
		more = growth(kind, id, bytes);
	if (more.device < 0)
		return true;
	if (!charge_begin(&more))
		return false;
	WITH_LOCK(&locks.shared);
	struct entry *e = find(kind, id);
	if (e)
		e->s.bytes = bytes;
	else
		ledger_release(more.device, more.bytes);
	return true;
}

bool shared_drop(enum shared_kind kind, uint64_t id)
{
	struct entry *e;
	bool was_known = false;

	if (!shared_any())
		return false;
	WITH_LOCK(&locks.shared);
	for (; (e = find(kind, id)); was_known = true)
		drop(e);
	return was_known;
}

uint64_t shared_key(enum shared_kind kind, uint64_t id)
{
	if (!shared_any())
		return 0;
	WITH_LOCK(&locks.shared);
	struct entry *e = find(kind, id);
	return e ? e->s.key : 0;
}

void shared_context_gone(CUcontext context)
{
	WITH_LOCK(&locks.shared);
	for (size_t i = process_state.shared; i-- > 0;)
		if (list[i].s.context == context)
			drop(&list[i]);
}

void shared_refresh(uint64_t now_ns)
{
	static uint64_t last_ns;

	if (!atomic_load_explicit(&uncharged, memory_order_relaxed) ||
	    now_ns - last_ns < REFRESH_EVERY_NS ||
	    atomic_load(&atomic_load(&process_state.control)->adopting) ||
	    !sys_trylock(&locks.shared))
		return;
	last_ns = now_ns;
	for (size_t i = 0; i < process_state.shared; i++)
		claim_and_charge(&list[i]);
	sys_unlock(&locks.shared);
}

void shared_republish(struct region_report *report, const struct region_slot *slot)
{
	WITH_LOCK(&locks.shared);
	for (size_t i = 0; i < process_state.shared; i++)
		if (list[i].is_charged)
			exports_republish(report, slot, list[i].s.key);
}

void shared_reset(void)
{
	atomic_store(&process_state.shared, 0);
	atomic_store(&uncharged, 0);
}
